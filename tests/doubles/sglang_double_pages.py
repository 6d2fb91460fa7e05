"""The double's pages about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from sglang_double_answers import SLACK
from sglang_double_http import HttpRequest

if TYPE_CHECKING:
    from sglang_double import SGLangDouble


def health(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /health``: the Rust front end says that it is well before its own first call has ended."""
    double.health_checks += 1
    request.answer(503 if double.starting and double.frontend == "python" else 200, b"", None)


def model_info(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /model_info``."""
    answer = {
        "model_path": double.model_path,
        "served_model_name": double.served_model_name,
        "tokenizer_path": double.model_path,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": "auto",
        "reasoning_parser": None,
        "tool_call_parser": None,
    }
    request.answer(200, orjson.dumps(answer))


def server_info(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /server_info``: on the Python front end with the keys in clear text, as SGLang does."""
    common = {
        "model_path": double.model_path,
        "served_model_name": double.served_model_name,
        "tokenizer_path": double.model_path,
        "max_total_num_tokens": 1_000_000,
        "version": "0.5.19",
        "internal_states": [{"effective_max_running_requests_per_dp": 16}],
    }
    if double.frontend == "rust":
        answer = common | {"max_context_length": double.context_length}
    else:
        answer = common | {
            "context_length": double.context_length,
            "max_req_input_len": double.context_length - SLACK + 1,
            "page_size": double.page_size,
            "disable_radix_cache": double.disable_radix_cache,
            "skip_tokenizer_init": False,
            "api_key": double.api_key,
            "admin_api_key": double.admin_api_key,
        }
    request.answer(200, orjson.dumps(answer))


def models(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /v1/models``."""
    model = {"id": double.served_model_name, "object": "model", "created": 0, "owned_by": "sglang"}
    more = {"root": double.served_model_name, "parent": None, "max_model_len": double.context_length}
    request.answer(200, orjson.dumps({"object": "list", "data": [model | more]}))
