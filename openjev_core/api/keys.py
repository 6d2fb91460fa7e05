"""Bearer keys."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from openjev_core.errors import Unauthorized


class Keys:
    """The keys that are accepted. Holds digests alone, so that no log or traceback can show a key.

    Args:
        keys: None at all accepts every request.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(sha256(key.encode()).digest() for key in keys)

    def check(self, authorization: bytes | None) -> None:
        """Accept or refuse an Authorization header, in a time that tells nothing of the keys.

        Raises:
            Unauthorized: It is missing, of another scheme, or holds none of the keys.
        """
        if not self._digests:
            return
        if authorization is None:
            raise Unauthorized("this server needs a key: send the header `Authorization: Bearer <key>`")
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            raise Unauthorized("the Authorization header is not of the form `Bearer <key>`")
        digest = sha256(token.strip()).digest()
        # Every key is compared, the matching one too, so that its place does not show either.
        if not any([hmac.compare_digest(digest, known) for known in self._digests]):  # noqa: C419
            raise Unauthorized("the key is not one that this server accepts")
