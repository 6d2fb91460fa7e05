"""A server of HTTP that answers by script, byte for byte."""

from __future__ import annotations

import asyncio


class Script:
    """A server that gives the answers in their turn, whichever connection asks.

    An answer is a list of parts: bytes are sent, an event is waited for, ``None`` closes the connection, and ``...``
    waits until the client does.
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.received = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()

    def answer(self, head):
        return self.answers.pop(0)

    async def __call__(self, reader, writer):
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, _, length = head.lower().partition(b"content-length: ")
                self.received.append(head + await reader.readexactly(int(length.partition(b"\r\n")[0] or 0)))
                self.asked.set()
                for part in self.answer(head):
                    if part is None or writer.is_closing():
                        return
                    if isinstance(part, asyncio.Event):
                        await part.wait()
                    elif part is ...:
                        await reader.read()
                    else:
                        writer.write(part)
                        await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.closed.set()


def answer(status, content):
    """A whole reply."""
    return b"HTTP/1.1 %d Any\r\nContent-Length: %d\r\n\r\n%b" % (status, len(content), content)
