"""A reply of another server, read within limits on its time and its size."""

from __future__ import annotations

import asyncio

import httpx


class ReplyTooLarge(Exception):
    """The reply has more bytes than are read.

    Attributes:
        status: The reply's.
    """

    def __init__(self, status: int, most_bytes: int) -> None:
        self.status = status
        super().__init__(f"the reply is larger than {most_bytes} bytes")


async def bounded_reply(
    client: httpx.AsyncClient, request: httpx.Request, *, seconds: float, most_bytes: int
) -> tuple[httpx.Response, bytes]:
    """Send a request and read the whole reply.

    Args:
        client: Sends the request.
        request: The request.
        seconds: Time limit of the whole exchange. httpx limits the wait for each piece alone, and a server may trickle.
        most_bytes: Upper bound on the bytes of the reply, counted after decompression.

    Returns:
        The response, for its status and headers, and its body.

    Raises:
        httpx.HTTPError: There is no whole reply; :class:`httpx.ReadTimeout` after ``seconds``, and
            :class:`httpx.ConnectTimeout` where the client's own limit on connecting ended it.
        ReplyTooLarge: The reply is larger than ``most_bytes``.
    """
    try:
        async with asyncio.timeout(seconds):
            response = await client.send(request, stream=True)
            try:
                body = bytearray()
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > most_bytes:
                        raise ReplyTooLarge(response.status_code, most_bytes)
            finally:
                await response.aclose()
    except httpx.ConnectTimeout:
        raise
    except (TimeoutError, httpx.TimeoutException):
        raise httpx.ReadTimeout(f"no whole reply within {seconds:g} seconds", request=request) from None
    return response, bytes(body)
