"""HTTP by hand, for requests that no client would send."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager

from attrs import frozen


@frozen
class RawReply:
    """A response as it came.

    Attributes:
        status: Status code; ``None`` when the connection ended without a response.
        headers: Lower-case name to value.
        body: Its bytes.
        closed: Whether the server closed the connection after it.
    """

    status: int | None
    headers: dict
    body: bytes
    closed: bool

    @property
    def json(self):
        return json.loads(self.body)


@contextmanager
def connection(server, timeout=10):
    with socket.create_connection((server.host, server.port), timeout=timeout) as sock:
        yield sock


def exchange(server, data, *, timeout=10, half_close=False):
    """Send bytes on a new connection and read one response."""
    with connection(server, timeout) as sock:
        try:
            sock.sendall(data)
            if half_close:
                sock.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was sent; the response is what counts
        return read_reply(sock)


def read_reply(sock):
    """One response, by its content-length."""
    head = b""
    while b"\r\n\r\n" not in head:
        if not (data := sock.recv(65536)):
            return RawReply(None, {}, head, True)
        head += data
    head, _, body = head.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100"):
        raise AssertionError("a 100 response; read it with read_reply first")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        if not (data := sock.recv(65536)):
            break
        body += data
    return RawReply(int(lines[0].split(" ")[1]), headers, body, headers.get("connection") == "close")


def post(body, *, path="/v1/systemone", headers=(), length=None):
    """The bytes of a POST request."""
    head = [f"POST {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*head, *headers]).encode("latin-1") + b"\r\n\r\n" + body


def request(state="A state.", **questions):
    """The bytes of a request's body."""
    questions = questions or {"q": {"type": "noul", "instructions": "Is it so?"}}
    return json.dumps({"model": "jev-latest", "state": state, "questions": questions}).encode()
