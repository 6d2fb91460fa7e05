"""Finds out which kind of server answers at an address, from pages that only one kind has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import httpx
import orjson
from attrs import frozen

from openjev_core.bounded_reply import ReplyTooLarge, bounded_reply
from openjev_core.errors import StartupError

PAGE_TIMEOUT = 10.0
"""Seconds for each page, to its last byte."""
CONNECT_TIMEOUT = 5.0
"""Seconds for a connection."""
MAX_PAGE = 4 * 2**20
"""Bytes of a page that are read; SGLang's have 1 KB, a llama-server's some 20 KB."""
OK, UNAUTHORIZED, FORBIDDEN, LOADING = 200, 401, 403, 503
SGLANG_PAGES = ("/model_info", "/get_model_info")
"""A router before several SGLangs has the second alone."""
LLAMA_SERVER_PAGE = "/props"


@frozen
class Server:
    """A server of a known kind.

    Attributes:
        kind: Its kind.
        page: The page by which it was recognised; ``None`` where nothing was asked.
        tokenizer: The source of its tokenizer, as an SGLang reports it: a directory or a Hugging Face name.
    """

    kind: Literal["SGLang", "llama-server"]
    page: str | None = None
    tokenizer: str | None = None


async def find_server(url: str, api_key: str | None) -> Server:
    """Recognise the server at ``url``.

    Args:
        url: Its base address.
        api_key: Its Bearer key, if it wants one.

    Raises:
        StartupError: Nothing answers there, the key is refused, or the server is none that is known; lists what was
            tried.
    """
    tried: list[str] = []
    expected = f"connect: expected an SGLang or a llama-server at {url}"
    headers = {"accept-encoding": "identity", "user-agent": "openjev"}
    if api_key is not None:
        headers["authorization"] = f"Bearer {api_key}"
    timeout = httpx.Timeout(PAGE_TIMEOUT, connect=CONNECT_TIMEOUT)
    async with httpx.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as client:
        for path in (*SGLANG_PAGES, LLAMA_SERVER_PAGE):
            try:
                status, page = await read_page(client, url.rstrip("/") + path)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise StartupError(
                    f"{expected}, found nothing: it cannot be reached ({str(error) or type(error).__name__}). "
                    "Start it, or give its address with --connect"
                ) from None
            except (httpx.HTTPError, OSError) as error:
                tried.append(f"GET {path} ({type(error).__name__})")
                continue
            server = recognise(path, status, page)
            if server is not None:
                return server
            tried.append(f"GET {path} ({status})")
            if status in (UNAUTHORIZED, FORBIDDEN):
                raise StartupError(
                    f"{expected}, found a server that refuses the key: {', '.join(tried)}. "
                    "OPENJEV_BACKEND_API_KEY must be the server's --api-key"
                )
    raise StartupError(
        f"{expected}, found a server that is neither, or not ready; tried {', '.join(tried)}. Give the address of one "
        "with --connect"
    )


async def read_page(client: httpx.AsyncClient, url: str) -> tuple[int, Mapping[str, Any]]:
    """The page's status and JSON object; an empty one where the body is no JSON object or is too long.

    Raises:
        httpx.HTTPError: There is no whole page.
    """
    try:
        response, content = await bounded_reply(
            client, client.build_request("GET", url), seconds=PAGE_TIMEOUT, most_bytes=MAX_PAGE
        )
    except ReplyTooLarge as error:
        return error.status, {}
    try:
        page = orjson.loads(content)
    except orjson.JSONDecodeError:
        page = None
    return response.status_code, page if isinstance(page, dict) else {}


def recognise(path: str, status: int, page: Mapping[str, Any]) -> Server | None:
    """The server that gave this answer; ``None`` where the answer does not say."""
    if path in SGLANG_PAGES:
        model = page.get("model_path")
        if status != OK or not isinstance(model, str):
            return None
        tokenizer = page.get("tokenizer_path")
        return Server("SGLang", path, tokenizer if isinstance(tokenizer, str) and tokenizer else model)
    error = page.get("error")
    loading = status == LOADING and isinstance(error, dict) and error.get("type") == "unavailable_error"
    if loading or (status == OK and isinstance(page.get("default_generation_settings"), dict)):
        return Server("llama-server", path)
    return None
