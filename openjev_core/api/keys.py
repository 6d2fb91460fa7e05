"""The Bearer keys that a server accepts."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from openjev_core.api.exchange import joined
from openjev_core.errors import Unauthorized

Handler = Callable[[Request], Awaitable[Response]]


class Keys:
    """The Bearer keys that are accepted. Holds digests alone, so that no log or traceback can show a key.

    Args:
        keys: When there are none, every request is accepted.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(sha256(key.encode()).digest() for key in keys)

    def checked(self, handler: Handler) -> Handler:
        """A handler for requests with one of the keys. It refuses others before it reads their bodies."""

        async def handle(request: Request) -> Response:
            self.check_request(request)
            return await handler(request)

        return handle

    def check_request(self, request: Request) -> None:
        """Accept or refuse a request.

        Raises:
            Unauthorized: Its header holds none of the keys.
        """
        if self._digests:
            self.check(joined(request.headers, "authorization"))

    def check(self, authorization: str) -> None:
        """Accept or refuse an Authorization header, in a time that tells nothing of the keys.

        Raises:
            Unauthorized: It is missing, of another scheme, or holds none of the keys.
        """
        if not authorization:
            raise Unauthorized("this server needs a key: send the header `Authorization: Bearer <key>`")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("the Authorization header is not of the form `Bearer <key>`")
        digest = sha256(token.strip().encode("latin-1")).digest()
        # Every key is compared, the matching one too, so that its place does not show either.
        if not any([hmac.compare_digest(digest, known) for known in self._digests]):  # noqa: C419
            raise Unauthorized("the key is not one that this server accepts")
