"""A llama.cpp server's ``/tokenize`` and ``/detokenize``: text and ids, from any thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import orjson

from openjev_core.backends.llamacpp.client import KEEPALIVE, headers, json_object, unavailable
from openjev_core.errors import BackendError, BackendUnavailable

TIMEOUT = 30.0
"""Seconds. The server tokenizes beside its computation, 3 MB a second."""


class Vocabulary:
    """Calls to one server.

    Args:
        url: Its base address.
        api_key: Its Bearer key, if it wants one.
        transport: What sends; httpx's own when ``None``.
    """

    def __init__(self, url: str, api_key: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers(api_key),
            transport=transport,
            timeout=TIMEOUT,
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE),
            trust_env=False,
        )

    def tokenize(self, pieces: Sequence[str], *, parse_special: bool) -> list[int]:
        """The ids of all pieces, each tokenized by itself, nothing added.

        ``parse_special`` false spares control tokens, but not those that a model lists as user-defined.

        Raises:
            BackendUnavailable: The server does not answer.
            BackendError: Its answer is none.
        """
        body = {"content": pieces, "add_special": False, "parse_special": parse_special}
        found = self._post("/tokenize", body).get("tokens")
        if not isinstance(found, list) or not all(type(token) is int for token in found):
            raise BackendError("llama.cpp's answer to /tokenize holds no token ids")
        return found

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, control tokens included; raises as :meth:`tokenize` does."""
        found = self._post("/detokenize", {"tokens": list(ids)}).get("content")
        if not isinstance(found, str):
            raise BackendError("llama.cpp's answer to /detokenize holds no text")
        return found

    def _post(self, path: str, body: Any) -> dict[str, Any]:
        if self._http.is_closed:
            raise BackendUnavailable(f"the connections to llama.cpp at {self.url} are closed")
        content = orjson.dumps(body)
        try:
            try:
                response = self._http.post(path, content=content)
            except httpx.RemoteProtocolError:
                # As in the client for completions: an idle connection closed at the moment of its use.
                response = self._http.post(path, content=content)
        except (httpx.HTTPError, OSError) as error:
            raise unavailable(self.url, error) from error
        return json_object(response)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
