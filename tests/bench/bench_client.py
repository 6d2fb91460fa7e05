"""The load: a closed loop of keep-alive clients over raw sockets, so that it costs little beside what it measures."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

from attrs import frozen


@frozen
class Load:
    """What a run of requests took.

    Attributes:
        seconds: Wall-clock, from the first request to the last answer.
        latencies: Seconds of each request.
        answers: The bodies.
    """

    seconds: float
    latencies: list[float]
    answers: list[bytes]


async def drive(url, bodies, clients, path="/v1/systemone", key=None):
    """Send every body once, ``clients`` at a time, with a Bearer key where there is one.

    Raises:
        RuntimeError: An answer's status is not 200.
    """
    place = urlsplit(url)
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    queue = iter(bodies)
    latencies, answers = [], []

    async def client():
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            for body in queue:
                head = (
                    f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n{authorization}"
                )
                began = time.perf_counter()
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                status, answer, reusable = await read_answer(reader)
                latencies.append(time.perf_counter() - began)
                if status != 200:
                    raise RuntimeError(f"{url} answered {status}: {answer[:300]!r}")
                answers.append(answer)
                if not reusable:
                    writer.close()
                    reader, writer = await asyncio.open_connection(place.hostname, place.port)
        finally:
            writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(time.perf_counter() - began, latencies, answers)


async def read_answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
    if b"content-length" in fields:
        body = await reader.readexactly(int(fields[b"content-length"]))
    elif fields.get(b"transfer-encoding") == b"chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.read()
        return status, body, False
    return status, body, not head.startswith(b"HTTP/1.0") and fields.get(b"connection") != b"close"
