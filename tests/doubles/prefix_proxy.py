"""A proxy that offers a server below a path and strips that path, as nginx and Traefik do."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

OWN = ("host", "connection", "transfer-encoding", "content-length", "content-encoding")
"""Headers of one connection, which are not passed on."""


@contextmanager
def prefix_proxy(url, prefix):
    """The address below which the server at ``url`` is, for the length of the block."""
    with httpx.Client(base_url=url, timeout=60) as client:

        class Proxy(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if not self.path.startswith(prefix + "/"):
                    self.send_error(404)
                    return
                headers = {name: value for name, value in self.headers.items() if name.lower() not in OWN}
                reply = client.request(self.command, self.path.removeprefix(prefix), content=body, headers=headers)
                self.send_response(reply.status_code)
                for name, value in reply.headers.items():
                    if name.lower() not in OWN:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(reply.content)))
                self.end_headers()
                self.wfile.write(reply.content)

            do_GET = do_POST = answer  # noqa: N815 - the library's names

            def log_message(self, *_):
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}{prefix}"
            server.shutdown()
            thread.join(10)
