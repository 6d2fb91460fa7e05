"""HTTP/1.1, with the protocol's own refusals in JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from itertools import chain
from typing import Any

import h11
from hypercorn.events import Closed
from hypercorn.protocol.events import Request
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream

from openjev_core.api.error_reply import detail_reply
from openjev_core.api.exchange import Reply
from openjev_core.api.request_id import request_id_for
from openjev_core.api.serving.server_config import MAX_HEAD_BYTES

WHOLE_URL = re.compile(rb"https?://[^/?#]+", re.IGNORECASE)


class Http1(H11Protocol):
    """hypercorn's HTTP/1.1 protocol, changed in four ways.

    What h11 refuses is answered in the wire contract's shape. A whole URL may stand where the path is expected. There
    are no WebSockets here and no upgrade to cleartext HTTP/2: an Upgrade header is ignored, as HTTP allows, so that
    such a request gets an ordinary answer. And requests that a client sent ahead are not begun when it has gone.

    Args:
        args: As for hypercorn's.
        gone: Whether the connection is closed or closing.
    """

    def __init__(self, *args: Any, gone: Callable[[], bool]) -> None:
        super().__init__(*args)
        self._gone = gone

    async def refuse(self, status: int) -> None:
        """Answer for the protocol itself, if an answer can still be given."""
        if self.connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send_error_response(status)

    @property
    def head_begun(self) -> bool:
        """Whether a part of a request's headers has come, and no more."""
        return self.connection.their_state is h11.IDLE and bool(self.connection.trailing_data[0])

    @property
    def sender_is_done(self) -> bool:
        """Whether the client has sent all that it announced, and nothing wrong."""
        return self.connection.their_state not in (h11.SEND_BODY, h11.ERROR)

    async def _send_error_response(self, status_code: int) -> None:
        # h11 has 501 for a coding that it does not know: what a client sends is never this server's failure.
        status_code = status_code if status_code < HTTPStatus.INTERNAL_SERVER_ERROR else HTTPStatus.BAD_REQUEST
        reply = refusal(status_code)
        own = (
            (b"content-length", b"%d" % len(reply.body)),
            (b"connection", b"close"),
            (b"x-typesafe-request-id", request_id_for(None).encode()),
        )
        headers = list(chain(reply.headers, own, self.config.response_headers("h11")))
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=reply.body))
        await self._send_h11_event(h11.EndOfMessage())

    async def _check_protocol(self, event: h11.Request) -> None:
        if event.method == b"PRI":
            await super()._check_protocol(event)

    async def _create_stream(self, request: h11.Request) -> None:
        if self._gone():
            return
        # A body with two lengths is how requests are smuggled past a proxy that believes the other one.
        two_lengths = {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}
        if two_lengths or request.http_version not in (b"1.1", b"1.0"):
            await self.refuse(HTTPStatus.BAD_REQUEST)
            await self.send(Closed())
            return
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii"),
                raw_path=origin_form(request.target),
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1


def origin_form(target: bytes) -> bytes:
    """A request's target as path and query. Proxies get a whole URL there, and HTTP has every server accept one."""
    whole = WHOLE_URL.match(target)
    if whole is None:
        return target
    rest = target[whole.end() :]
    return rest if rest.startswith(b"/") else b"/" + rest


def refusal(status: int) -> Reply:
    """The reply to what is no HTTP request that this server reads."""
    if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        message = f"the request line and headers are over the limit of {MAX_HEAD_BYTES:,} bytes"
        return detail_reply(status, "headers_too_large", message)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return detail_reply(status, "request_timeout", "the request's headers did not arrive in time")
    message = (
        "this is no well-formed HTTP/1.0 or HTTP/1.1 request, or one whose body has two lengths or an unknown coding"
    )
    return detail_reply(status, "malformed_request", message)
