"""What a running SGLang says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen

from openjev_core.backends.sglang.client import SGLangClient

TIMEOUT = 10.0
PROMPT_SLACK = 7
"""The longest prompt is the context length less this (measured on 0.5.19, both front ends)."""


@frozen(kw_only=True)
class ServerFacts:
    """Selected from ``/server_info`` and ``/model_info``; ``None`` for what is not reported.

    The pages themselves are never kept: ``/server_info`` holds the server's keys in clear text.
    """

    frontend: Literal["python", "rust"] | None = None
    version: str | None = None
    model_path: str | None = None
    tokenizer_path: str | None = None
    served_model_name: str | None = None
    max_prompt_tokens: int | None = None
    page_size: int | None = None
    radix_cache: bool | None = None


async def read_facts(client: SGLangClient) -> ServerFacts:
    """Ask the server.

    Raises:
        BackendUnavailable: It is not there.
        DeadlineExceeded: It does not answer.
    """
    server = await client.info("/server_info", seconds=TIMEOUT) or {}
    # Routers have the page under its old name alone.
    model = await client.info("/model_info", seconds=TIMEOUT) or await client.info("/get_model_info", seconds=TIMEOUT)
    model = model or {}
    disabled = server.get("disable_radix_cache")
    return ServerFacts(
        frontend="rust" if "max_context_length" in server else "python" if "context_length" in server else None,
        version=known(server, "version", str),
        model_path=known(model, "model_path", str) or known(server, "model_path", str),
        tokenizer_path=known(model, "tokenizer_path", str) or known(server, "tokenizer_path", str),
        served_model_name=known(model, "served_model_name", str) or known(server, "served_model_name", str),
        max_prompt_tokens=longest_prompt(server),
        page_size=known(server, "page_size", int),
        radix_cache=not disabled if isinstance(disabled, bool) else None,
    )


def known(page: Mapping[str, Any], name: str, kind: type) -> Any:
    """A field of the page, if it is there and of its type."""
    value = page.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def longest_prompt(server: Mapping[str, Any]) -> int | None:
    """The smallest of the limits that the page gives."""
    context = known(server, "max_context_length", int) or known(server, "context_length", int)
    accepted = known(server, "max_req_input_len", int)
    pool = known(server, "max_total_num_tokens", int)
    limits = [
        context - PROMPT_SLACK if context else None,
        accepted - 1 if accepted else None,
        pool - 1 if pool else None,
    ]
    return min((limit for limit in limits if limit), default=None)
