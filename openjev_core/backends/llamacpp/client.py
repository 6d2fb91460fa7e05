"""One llama.cpp server over HTTP, its answers and its failures in openjev's terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import orjson

from openjev_core.backends.llamacpp.readout import reading
from openjev_core.backends.protocol import Reading
from openjev_core.errors import BackendError, BackendUnavailable

LABEL_BIAS = 100.0
"""Added to every label's logit: it lifts the labels above every other token, and cancels among them."""
CONNECT_TIMEOUT = 5.0
KEEPALIVE = 4.0
"""Seconds that an idle connection is kept: the server closes its own after 5."""
RESPONSE_FIELDS = ["tokens_evaluated", "tokens_predicted", "timings", "completion_probabilities"]
OK, UNAUTHORIZED, FORBIDDEN = 200, 401, 403
WAITING_HELPS = frozenset({429, 502, 503, 504})
"""A model that is still loading answers 503."""
MAX_REASON = 500


class LlamaCppClient:
    """Calls to one llama.cpp server.

    Args:
        url: Its base address.
        api_key: Its Bearer key, if it wants one.
        transport: What sends; httpx's own when ``None``.
    """

    def __init__(self, url: str, api_key: str | None = None, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=headers(api_key),
            transport=transport,
            # How long an evaluation may take is the engine's business.
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
            slot: Where in the server.
            reuse: Keep what the slot has already computed of the prompt; else all of it is computed.
            seconds: For the call; no limit when ``None``.

        Returns:
            The reading; its logprobs are normalised over the labels.

        Raises:
            BackendUnavailable: The server is not there, breaks off, or says that it cannot take the call now.
            BackendError: It refuses the call, or its answer is no distribution over the labels.
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
        answer = await self.send("POST", "/completion", body, seconds=seconds)
        return reading(answer, labels)

    async def get(self, path: str, *, seconds: float) -> dict[str, Any]:
        """``GET path``: its object. Raises as :meth:`complete` does."""
        return await self.send("GET", path, seconds=seconds)

    async def send(self, method: str, path: str, body: Any = None, *, seconds: float | None = None) -> dict[str, Any]:
        """The object that a 200 carries. Raises as :meth:`complete` does."""
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
            raise unavailable(self.url, error) from error
        return json_object(response)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def headers(api_key: str | None) -> dict[str, str]:
    """What every request carries."""
    fixed = {"content-type": "application/json", "user-agent": "openjev"}
    return fixed if api_key is None else fixed | {"authorization": f"Bearer {api_key}"}


class Unreachable(BackendUnavailable):
    """Nothing listens at the server's address."""


def unavailable(url: str, error: Exception) -> BackendUnavailable:
    """What a failed exchange means."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Unreachable(f"llama.cpp cannot be reached at {url}: {str(error) or type(error).__name__}")
    if isinstance(error, httpx.TimeoutException):
        return BackendUnavailable(f"llama.cpp at {url} did not answer in time")
    return BackendUnavailable(f"llama.cpp at {url} broke off its answer: {str(error) or type(error).__name__}")


def json_object(response: httpx.Response) -> dict[str, Any]:
    """The object that a 200 carries.

    Raises:
        BackendUnavailable: A status that waiting can cure.
        BackendError: Any other status, or a body that is no JSON object.
    """
    try:
        found = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        found = None
    if response.status_code == OK:
        if not isinstance(found, dict):
            raise BackendError(f"llama.cpp's answer to {response.request.url.path} is no JSON object")
        return found
    said = f"llama.cpp answered {response.status_code} to {response.request.url.path}: {reason(found, response)}"
    if response.status_code in WAITING_HELPS:
        raise BackendUnavailable(said)
    if response.status_code in (UNAUTHORIZED, FORBIDDEN):
        raise BackendError(f"{said}. OPENJEV_BACKEND_API_KEY must be the server's --api-key")
    raise BackendError(said)


def reason(found: Any, response: httpx.Response) -> str:
    """The words of an error body, bounded."""
    error = found.get("error") if isinstance(found, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) else response.text
    return text.strip()[:MAX_REASON] or "no reason given"
