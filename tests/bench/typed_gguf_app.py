"""typed-gguf as a process to measure, by a Python that has it: `typed_gguf_app.py MODEL LIBRARY PORT THREADS`.

Its command line keeps a model loaded in a host of its own and answers from there; this does what that host does, in a
process that can be stopped by its id. LIBRARY is the llama.cpp to use: xllamacpp's, which is newer than the one that
typed-gguf 0.3.0 pins, and whose context parameters have one pointer more.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from typed_gguf.runtime import ctypes_binding

LIBRARIES = ("libllama.so", "libggml.so", "libggml-base.so")


def widen(library):
    """Put in the pointer that this llama.cpp has in front of its switches, if it has."""
    probe = ctypes.CDLL(library).llama_context_default_params
    layout = type("Raw", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_uint8 * 256)]})
    probe.restype, probe.argtypes = layout, []
    known = ctypes_binding.llama_context_params
    # The defaults: embeddings off, and the next four switches on.
    if bytes(probe().bytes)[known.embeddings.offset :][:5] == b"\0\1\1\1\1":
        return
    fields = list(known._fields_)
    fields.insert([name for name, _ in fields].index("embeddings"), ("inserted", ctypes.c_void_p))
    ctypes_binding.llama_context_params = type("llama_context_params", (ctypes.Structure,), {"_fields_": fields})


def main():
    model, library, port, threads = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:
        for name in LIBRARIES:
            (Path(home) / name).symlink_to(Path(library).resolve())
        os.environ |= {"TYPED_GGUF_HOME": home, "TYPED_GGUF_RUNTIME_DIR": home}
        widen(library)
        serve(model, int(port), int(threads))


def serve(model, port, threads):
    from typed_gguf import cli  # noqa: PLC0415 - binds llama.cpp's structures as they are then
    from typed_gguf.engine import session  # noqa: PLC0415 - the same

    options = {"readout": "single_token", "threads": threads}
    settings = {"fit_enabled": False, "fit_target_mb": None, "fit_ctx": None, "fit_cache": False}
    loaded = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.answer({"status": "ok"})

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            payload = {**asked, "model": model, "options": options}
            prepared = cli.prepare_decision(payload, **settings)
            if not loaded:
                loaded.append(session.open_model(model, fit_disabled=True).__enter__())
            self.answer(cli.decide_on_handle(prepared, payload, loaded[0], session_load_ms=0.0))

        def answer(self, found):
            content = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *parts):
            pass

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
