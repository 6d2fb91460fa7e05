"""Calls to one llama.cpp server over HTTP: completions, and its vocabulary. Failures come in openjev's own errors.

Completions are awaited on the event loop; ``/tokenize`` and ``/detokenize`` are called from any thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import httpx
import msgspec
import orjson
from attrs import frozen
from msgspec import Meta, Struct

from openjev_core.backends.http_client import OK, HttpClient
from openjev_core.backends.protocol import Reading
from openjev_core.backends.replies import decode, refusal
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded

SERVER = "llama.cpp"
LABEL_BIAS = 100.0
"""Added to every label's logit. It lifts the labels above every other token and cancels among them, so the
probabilities after sampling are the softmax over the labels alone."""
TOKENIZE_TIMEOUT = 30.0
"""Seconds. The server tokenizes 3 MB a second, while it computes."""
KEEPALIVE = 4.0
"""Seconds that an idle connection is kept: the server closes its own after 5."""
RESPONSE_FIELDS = ["tokens_evaluated", "tokens_predicted", "timings", "completion_probabilities"]

Count = Annotated[int, Meta(ge=0)]
Probability = Annotated[float, Meta(ge=0, le=1.0001)]
"""1 has room for the rounding of 32-bit floats. A NaN arrives as null, and is refused."""


class Timings(Struct):
    """``prompt_n`` counts the tokens of the prompt that were computed."""

    prompt_n: Count


class Candidate(Struct):
    """A token and its probability after sampling."""

    id: int
    prob: Probability


class Position(Struct):
    """The candidates for one output token; ``None`` from servers that do not know probabilities after sampling."""

    top_probs: list[Candidate] | None = None


class Completion(Struct):
    """The answer to a completion. ``tokens_evaluated`` counts the whole prompt, what was reused included."""

    tokens_evaluated: Count
    tokens_predicted: Count
    timings: Timings
    completion_probabilities: list[Position] | None = None


class Tokens(Struct):
    """The answer of ``/tokenize``."""

    tokens: list[int]


class Text(Struct):
    """The answer of ``/detokenize``."""

    content: str


Decoder = msgspec.json.Decoder

COMPLETION, TOKENS, TEXT, PAGE = Decoder(Completion), Decoder(Tokens), Decoder(Text), Decoder(dict[str, Any])


@frozen
class LlamaCppClient:
    """Completions, and the server's pages about itself.

    Attributes:
        http: The connections.
    """

    http: HttpClient

    @property
    def url(self) -> str:
        """The server's base address."""
        return self.http.url

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
        answer: Completion = await self._send("POST", "completion", COMPLETION, orjson.dumps(body), seconds=seconds)
        computed = answer.timings.prompt_n
        if computed > answer.tokens_evaluated:
            raise BackendError(
                f"llama.cpp's answer reports {computed} computed tokens of a prompt of {answer.tokens_evaluated}"
            )
        return Reading(
            logprobs=label_logprobs(answer, labels) if labels else (),
            prompt_tokens=answer.tokens_evaluated,
            cached_tokens=answer.tokens_evaluated - computed,
            output_tokens=answer.tokens_predicted,
        )

    async def get(self, path: str, *, seconds: float) -> dict[str, Any]:
        """The JSON object at a path, which is given without a leading slash. Raises as :meth:`complete` does."""
        page: dict[str, Any] = await self._send("GET", path, PAGE, seconds=seconds)
        return page

    async def _send(
        self,
        method: str,
        path: str,
        decoder: Decoder[Any],
        body: bytes | None = None,
        *,
        seconds: float | None,
    ) -> Any:
        try:
            status, content = await self.http.send_within(seconds, method, path, body)
        except DeadlineExceeded as error:
            # It is not the evaluation's own: the server is slow to answer a check, or has yet to load its model.
            raise BackendUnavailable(str(error)) from None
        return judged(status, content, decoder, path)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()


class Vocabulary:
    """The model's texts and token ids. Safe to call from several threads.

    Args:
        url: The server's base address.
        api_key: Its Bearer key, if it wants one.
        transport: What sends; httpx's own when ``None``.
    """

    def __init__(self, url: str, api_key: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(
            base_url=url,
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
        answer: Tokens = self._post("tokenize", body, TOKENS)
        return answer.tokens

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, control tokens included. Raises as :meth:`tokenize` does."""
        answer: Text = self._post("detokenize", {"tokens": list(ids)}, TEXT)
        return answer.content

    def _post(self, path: str, body: Any, decoder: Decoder[Any]) -> Any:
        if self._http.is_closed:
            raise BackendUnavailable("the connections to llama.cpp are closed")
        content = orjson.dumps(body)
        try:
            try:
                response = self._http.post(path, content=content)
            except httpx.RemoteProtocolError:
                # The server may close an idle connection at the moment when it is used again. Tokenizing twice does no
                # harm, and a server that is really gone refuses the second attempt.
                response = self._http.post(path, content=content)
        except (httpx.HTTPError, OSError) as error:
            said = str(error) or type(error).__name__
            raise BackendUnavailable(f"llama.cpp at {self._http.base_url} did not answer: {said}") from error
        return judged(response.status_code, response.content, decoder, path)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def headers(api_key: str | None) -> dict[str, str]:
    """The headers that every request of httpx has."""
    fixed = {"content-type": "application/json", "user-agent": "openjev"}
    return fixed if api_key is None else fixed | {"authorization": f"Bearer {api_key}"}


def judged(status: int, content: bytes, decoder: Decoder[Any], path: str) -> Any:
    """The body of a 200, decoded.

    Raises:
        BackendUnavailable: The status says that the same call may succeed later.
        BackendError: Any other status, or a body of another shape.
    """
    if status != OK:
        raise refusal(SERVER, status, content)
    return decode(decoder, content, server=SERVER, path=f"/{path}")


def label_logprobs(answer: Completion, labels: Sequence[int]) -> tuple[float, ...]:
    """The labels' logprobs, in the order of ``labels``.

    Raises:
        BackendError: A label is missing or there twice.
    """
    first = answer.completion_probabilities[0].top_probs if answer.completion_probabilities else None
    if first is None:
        raise BackendError(
            "llama.cpp's answer has no probabilities after sampling; a llama-server of 2025 or later is needed"
        )
    found = {one.id: one.prob for one in first}
    if len(found) != len(first):
        raise BackendError("llama.cpp's answer has two probabilities for one token")
    missing = [label for label in labels if label not in found]
    if missing:
        raise BackendError(
            f"llama.cpp returned no probability for {len(missing)} of {len(labels)} labels: {missing[:8]}"
        )
    return tuple([math.log(found[label]) if found[label] > 0 else -math.inf for label in labels])
