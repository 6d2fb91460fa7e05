"""The address of a server: the pages by which engines recognise what answers there."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import orjson

from openjev_core.errors import StartupError

if TYPE_CHECKING:
    import httpx

PAGE_TIMEOUT = 10.0
"""Seconds for each page, to its last byte."""
CONNECT_TIMEOUT = 5.0
"""Seconds for a connection."""
MAX_PAGE = 4 * 2**20
"""Bytes of a page that are read; SGLang's have 1 KB, a llama-server's some 20 KB."""
UNAUTHORIZED, FORBIDDEN = 401, 403


class Page(NamedTuple):
    """A page of a server.

    Attributes:
        status: Its HTTP status; 0 where there was no whole page.
        body: Its JSON object; empty where it is none, or too long.
    """

    status: int
    body: Mapping[str, Any]


class Address:
    """A server's address, entered while its pages are asked for. No redirect is followed.

    Args:
        url: The base address.
        api_key: The server's Bearer key, if it wants one.

    Attributes:
        url: The base address, without a slash at its end.
        tried: The pages that were asked for and what came of each, for a person.
    """

    def __init__(self, url: str, api_key: str | None) -> None:
        self.url = url.rstrip("/")
        self.tried: list[str] = []
        self._api_key = api_key
        self._pages: dict[str, Page] = {}
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        import httpx  # noqa: PLC0415 - slow to import

        headers = {"accept-encoding": "identity", "user-agent": "openjev"}
        if self._api_key is not None:
            headers["authorization"] = f"Bearer {self._api_key}"
        timeout = httpx.Timeout(PAGE_TIMEOUT, connect=CONNECT_TIMEOUT)
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout, trust_env=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def page(self, path: str) -> Page:
        """The page at a path, by GET. Each is asked for once.

        Raises:
            StartupError: Nothing answers at the address, or the key is refused.
            RuntimeError: The address is not entered.
        """
        if path not in self._pages:
            self._pages[path] = await self._get(path)
        return self._pages[path]

    async def _get(self, path: str) -> Page:
        import httpx  # noqa: PLC0415 - slow to import

        from openjev_core.bounded_reply import ReplyTooLarge, bounded_reply  # noqa: PLC0415 - it imports httpx

        if self._client is None:
            raise RuntimeError("ask for pages inside `async with address:`")
        request = self._client.build_request("GET", self.url + path)
        content = b""
        try:
            response, content = await bounded_reply(self._client, request, seconds=PAGE_TIMEOUT, most_bytes=MAX_PAGE)
            status = response.status_code
        except ReplyTooLarge as error:
            status = error.status
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise StartupError(
                f"connect: expected a server at {self.url}, found nothing: it cannot be reached "
                f"({str(error) or type(error).__name__}). Start it, or give its address with --connect"
            ) from None
        except (httpx.HTTPError, OSError) as error:
            self.tried.append(f"GET {path} ({type(error).__name__})")
            return Page(0, {})
        self.tried.append(f"GET {path} ({status})")
        if status in (UNAUTHORIZED, FORBIDDEN):
            raise StartupError(
                f"connect: the server at {self.url} refuses the key: {', '.join(self.tried)}. OPENJEV_BACKEND_API_KEY "
                "must be the server's key"
            )
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError:
            body = None
        return Page(status, body if isinstance(body, dict) else {})
