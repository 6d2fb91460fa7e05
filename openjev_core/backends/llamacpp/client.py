"""Calls to one llama.cpp server over HTTP: completions, and its vocabulary. Failures come in openjev's own errors.

Completions are awaited on the event loop; ``/tokenize`` and ``/detokenize`` are called from any thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import orjson

from openjev_core.backends.protocol import Reading
from openjev_core.errors import BackendError, BackendUnavailable

LABEL_BIAS = 100.0
"""Added to every label's logit. It lifts the labels above every other token and cancels among them, so the
probabilities after sampling are the softmax over the labels alone."""
CONNECT_TIMEOUT = 5.0
TOKENIZE_TIMEOUT = 30.0
"""Seconds. The server tokenizes 3 MB a second, while it computes."""
KEEPALIVE = 4.0
"""Seconds that an idle connection is kept: the server closes its own after 5."""
RESPONSE_FIELDS = ["tokens_evaluated", "tokens_predicted", "timings", "completion_probabilities"]
OK, UNAUTHORIZED, FORBIDDEN = 200, 401, 403
WAITING_HELPS = frozenset({429, 502, 503, 504})
"""A model that is still loading answers 503."""
MAX_REASON = 500
"""Characters of a server's error message that are shown."""
MAX_PROBABILITY = 1.0001
"""1, with room for the rounding of 32-bit floats."""


class LlamaCppClient:
    """Completions, and the server's pages about itself.

    Args:
        url: The server's base address.
        api_key: Its Bearer key, if it wants one.
        transport: What sends; httpx's own when ``None``.
    """

    def __init__(self, url: str, api_key: str | None = None, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=headers(api_key),
            transport=transport,
            # The engine limits how long an evaluation may take.
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE),
            trust_env=False,
        )

    async def complete(
        self, prompt: Sequence[int], labels: Sequence[int] = (), *, slot: int, reuse: bool, seconds: float | None = None
    ) -> Reading:
        """Read a prompt, and the labels' logprobs after it.

        Args:
            prompt: Token ids.
            labels: Distinct token ids; with none, the prompt is only read.
            slot: The server's slot that computes it.
            reuse: Keep what the slot has already computed of the prompt; otherwise all of it is computed.
            seconds: For the call; no limit when ``None``.

        Returns:
            The reading; its logprobs are normalised over the labels.

        Raises:
            BackendUnavailable: The server is not there, breaks off, or says that it cannot take the call now.
            BackendError: The server refuses the call, or its answer is no distribution over the labels.
        """
        body: dict[str, Any] = {
            "prompt": prompt,
            "id_slot": slot,
            "n_predict": 1,
            "cache_prompt": reuse,
            "samplers": ["temperature"],
            "temperature": 1.0,
            "response_fields": RESPONSE_FIELDS,
        }
        if labels:
            body |= {
                "n_probs": len(labels),
                "post_sampling_probs": True,
                "logit_bias": [[label, LABEL_BIAS] for label in labels],
            }
        return parse_completion(await self._send("POST", "/completion", body, seconds=seconds), labels)

    async def get(self, path: str, *, seconds: float) -> dict[str, Any]:
        """The JSON object at ``path``. Raises as :meth:`complete` does."""
        return await self._send("GET", path, seconds=seconds)

    async def _send(self, method: str, path: str, body: Any = None, *, seconds: float | None = None) -> dict[str, Any]:
        if self._http.is_closed:
            raise BackendUnavailable(f"the connections to llama.cpp at {self.url} are closed")
        content = None if body is None else orjson.dumps(body)
        timeout = httpx.Timeout(seconds, connect=CONNECT_TIMEOUT if seconds is None else min(seconds, CONNECT_TIMEOUT))
        try:
            try:
                response = await self._http.request(method, path, content=content, timeout=timeout)
            except httpx.RemoteProtocolError:
                # The server may close an idle connection at the moment when it is used again. Reading twice does no
                # harm, and a server that is really gone refuses the second attempt.
                response = await self._http.request(method, path, content=content, timeout=timeout)
        except (httpx.HTTPError, OSError) as error:
            raise failure(self.url, error) from error
        return json_object(response)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class Vocabulary:
    """The model's texts and token ids. Safe to call from several threads.

    Args:
        url: The server's base address.
        api_key: Its Bearer key, if it wants one.
        transport: What sends; httpx's own when ``None``.
    """

    def __init__(self, url: str, api_key: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers(api_key),
            transport=transport,
            timeout=TOKENIZE_TIMEOUT,
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE),
            trust_env=False,
        )

    def tokenize(self, pieces: Sequence[str], *, parse_special: bool) -> list[int]:
        """The ids of all pieces, each tokenized by itself, with nothing added.

        With ``parse_special`` false, control tokens are not recognised, but tokens that a model lists as user-defined
        are.

        Raises:
            BackendUnavailable: The server does not answer.
            BackendError: Its answer holds no token ids.
        """
        body = {"content": pieces, "add_special": False, "parse_special": parse_special}
        ids = self._post("/tokenize", body).get("tokens")
        if not isinstance(ids, list) or not all(type(token) is int for token in ids):
            raise BackendError("llama.cpp's answer to /tokenize holds no token ids")
        return ids

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, control tokens included. Raises as :meth:`tokenize` does."""
        text = self._post("/detokenize", {"tokens": list(ids)}).get("content")
        if not isinstance(text, str):
            raise BackendError("llama.cpp's answer to /detokenize holds no text")
        return text

    def _post(self, path: str, body: Any) -> dict[str, Any]:
        if self._http.is_closed:
            raise BackendUnavailable(f"the connections to llama.cpp at {self.url} are closed")
        content = orjson.dumps(body)
        try:
            try:
                response = self._http.post(path, content=content)
            except httpx.RemoteProtocolError:
                # As for completions: an idle connection was closed at the moment when it was used again.
                response = self._http.post(path, content=content)
        except (httpx.HTTPError, OSError) as error:
            raise failure(self.url, error) from error
        return json_object(response)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def headers(api_key: str | None) -> dict[str, str]:
    """The headers that every request has."""
    fixed = {"content-type": "application/json", "user-agent": "openjev"}
    return fixed if api_key is None else fixed | {"authorization": f"Bearer {api_key}"}


class Unreachable(BackendUnavailable):
    """Nothing listens at the server's address."""


def failure(url: str, error: Exception) -> BackendUnavailable:
    """The error for an exchange that did not end in an answer."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Unreachable(f"llama.cpp cannot be reached at {url}: {str(error) or type(error).__name__}")
    if isinstance(error, httpx.TimeoutException):
        return BackendUnavailable(f"llama.cpp at {url} did not answer in time")
    return BackendUnavailable(f"llama.cpp at {url} broke off its answer: {str(error) or type(error).__name__}")


def json_object(response: httpx.Response) -> dict[str, Any]:
    """The JSON object in the body of a 200.

    Raises:
        BackendUnavailable: The status says that the same call may succeed later.
        BackendError: Any other status, or a body that is no JSON object.
    """
    try:
        content = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        content = None
    path = response.request.url.path
    if response.status_code == OK:
        if not isinstance(content, dict):
            raise BackendError(f"llama.cpp's answer to {path} is no JSON object")
        return content
    message = f"llama.cpp answered {response.status_code} to {path}: {reason(content, response)}"
    if response.status_code in WAITING_HELPS:
        raise BackendUnavailable(message)
    if response.status_code in (UNAUTHORIZED, FORBIDDEN):
        raise BackendError(f"{message}. OPENJEV_BACKEND_API_KEY must be the server's --api-key")
    raise BackendError(message)


def reason(content: Any, response: httpx.Response) -> str:
    """The message in an error body, cut to :data:`MAX_REASON` characters."""
    error = content.get("error") if isinstance(content, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) else response.text
    return text.strip()[:MAX_REASON] or "no reason given"


def parse_completion(answer: Mapping[str, Any], labels: Sequence[int]) -> Reading:
    """The token counts of an answer and, where labels were asked for, their logprobs.

    Raises:
        BackendError: A count is missing or impossible, or a label is missing, there twice, or without a probability.
    """
    timings = answer.get("timings")
    if not isinstance(timings, dict):
        raise BackendError("llama.cpp's answer has no timings")
    prompt_tokens, computed = count(answer, "tokens_evaluated"), count(timings, "prompt_n")
    if computed > prompt_tokens:
        raise BackendError(f"llama.cpp's answer reports {computed} computed tokens of a prompt of {prompt_tokens}")
    return Reading(
        logprobs=label_logprobs(answer, labels) if labels else (),
        prompt_tokens=prompt_tokens,
        # `tokens_evaluated` counts the whole prompt, `prompt_n` what was computed of it.
        cached_tokens=prompt_tokens - computed,
        output_tokens=count(answer, "tokens_predicted"),
    )


def count(fields: Mapping[str, Any], name: str) -> int:
    """The count of that name."""
    value = fields.get(name)
    if type(value) is not int or value < 0:
        raise BackendError(f"llama.cpp's answer has no {name}, or one that is no count")
    return value


def label_logprobs(answer: Mapping[str, Any], labels: Sequence[int]) -> tuple[float, ...]:
    """The labels' logprobs, in the order of ``labels``."""
    wanted = frozenset(labels)
    logprobs: dict[int, float] = {}
    for entry in first_position(answer):
        token = entry.get("id") if isinstance(entry, dict) else None
        if token not in wanted:
            continue
        if token in logprobs:
            raise BackendError(f"llama.cpp returned the label {token} twice")
        logprobs[token] = logarithm(entry.get("prob"), token)
    missing = [label for label in labels if label not in logprobs]
    if missing:
        raise BackendError(
            f"llama.cpp returned no probability for {len(missing)} of {len(labels)} labels: {missing[:8]}"
        )
    return tuple(logprobs[label] for label in labels)


def first_position(answer: Mapping[str, Any]) -> list[Any]:
    """The entries of the first output token."""
    positions = answer.get("completion_probabilities")
    first = positions[0] if isinstance(positions, list) and positions else None
    entries = first.get("top_probs") if isinstance(first, dict) else None
    if not isinstance(entries, list):
        raise BackendError(
            "llama.cpp's answer has no probabilities after sampling; a llama-server of 2025 or later is needed"
        )
    return entries


def logarithm(probability: Any, token: int) -> float:
    """The logprob of a probability; a NaN arrives as null."""
    if type(probability) not in (int, float) or not 0 <= probability <= MAX_PROBABILITY:
        raise BackendError(f"llama.cpp returned {probability!r} as the probability of the label {token}")
    return math.log(probability) if probability > 0 else -math.inf
