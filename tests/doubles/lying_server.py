"""A server that passes calls on to a true one and tells something else than what it heard."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from attrs import define, field


@define
class Heard:
    """One exchange with the true server, for a lie to alter.

    Attributes:
        method, path, sent: The request; ``sent`` is its JSON.
        count: How many requests of this method and path came before.
        status, headers, body: The reply; ``body`` is bytes.
        over: Set when the double's block ends: a lie that hangs waits for it.
    """

    method: str
    path: str
    sent: object
    count: int
    status: int
    headers: dict
    body: bytes
    over: threading.Event = field(factory=threading.Event)

    @property
    def json(self):
        return json.loads(self.body)

    @json.setter
    def json(self, value):
        self.body = json.dumps(value).encode()


@contextmanager
def lying_server(truth: str, lie: Callable[[Heard], object]):
    """Serve ``lie`` before the server at ``truth``; gives the URL. A lie that returns bytes writes them raw."""
    counts = {}
    over = threading.Event()
    client = httpx.Client(timeout=20)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self):
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            passed_on = {k: v for k, v in self.headers.items() if k.lower() in ("authorization", "content-type")}
            reply = client.request(self.command, truth + self.path, content=sent, headers=passed_on)
            key = (self.command, self.path)
            counts[key] = counts.get(key, 0) + 1
            dropped = ("content-length", "transfer-encoding", "connection", "content-encoding", "date")
            headers = {k: v for k, v in reply.headers.items() if k.lower() not in dropped}
            parsed = json.loads(sent) if sent else None
            heard = Heard(*key, parsed, counts[key] - 1, reply.status_code, headers, reply.content, over)
            raw = lie(heard)
            raw = None if isinstance(raw, (str, int, dict)) else raw  # what a change of the record happened to return
            try:
                if raw is not None:
                    for piece in [raw] if isinstance(raw, bytes) else raw:
                        self.wfile.write(piece)
                        self.wfile.flush()
                    self.close_connection = True
                    return
                self.send_response(heard.status)
                for name, value in {**heard.headers, "content-length": str(len(heard.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(heard.body)
            except OSError:
                self.close_connection = True

        do_GET = answer  # noqa: N815 - http.server's name
        do_POST = answer  # noqa: N815 - http.server's name

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        client.close()
        thread.join(10)
