"""The ways in which `embedded.py` has one model answer questions about one state, and the settings fastest for each."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager

import httpx
from attrs import frozen
from bench_processes import Measured, llamacpp

from openjev_core.backends.llamacpp.client import LABEL_BIAS
from openjev_core.backends.llamacpp.embedded import WAITING

TIMEOUT = 600
WHOLE_PROMPTS = 3
"""Of the prompts that repeat the state, so many are measured, one of each type of question, and the rest counted like
them: all would take most of the benchmark's time."""
BATCHES = (256, 512)
OPENMP = ({}, WAITING)
"""How llama.cpp's threads wait: as libgomp has it, and as the embedded engine sets it."""


@frozen
class Asked:
    """One request, in the forms in which the ways take it.

    Attributes:
        body: The request.
        prefix: Token ids of what all questions share.
        suffixes: Token ids of each question.
    """

    body: bytes
    prefix: list[int]
    suffixes: list[list[int]]

    @property
    def unique(self):
        """Prefix and suffixes, each once."""
        return [*self.prefix, *(token for suffix in self.suffixes for token in suffix)]


@frozen
class Took:
    """Seconds on the clock, and of CPU."""

    clock: float
    cpu: float

    def times(self, factor):
        return Took(self.clock * factor, self.cpu * factor)


class Way:
    """A server and what is sent to it."""

    def __init__(self, server: Measured) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.url, timeout=TIMEOUT, trust_env=False)

    def timed(self, send):
        cpu, began = self.server.cpu_seconds(), time.perf_counter()
        send()
        return Took(time.perf_counter() - began, self.server.cpu_seconds() - cpu)

    def post(self, path, **content):
        answer = self.http.post(path, **content, headers={"content-type": "application/json"})
        if answer.status_code != httpx.codes.OK:
            raise RuntimeError(f"{self.server.name} answered {answer.status_code}: {answer.text[:300]}")
        return answer.json()


class Systemone(Way):
    """A server of the API: this one or llama.cpp's own."""

    def cold(self, asked):
        return self.timed(lambda: self.post("/v1/systemone", content=asked.body))

    warm = cold

    def moved(self, fewer, more):
        """The most that a probability moves when a request about the same state asks more questions besides."""
        few, many = (self.post("/v1/systemone", content=content)["answers"] for content in (fewer, more))
        return max(
            abs(one - other) for key in few for one, other in zip(numbers(few[key]), numbers(many[key]), strict=True)
        )


def numbers(answer):
    """An answer's probabilities."""
    return [answer["noul"]] if answer["type"] == "noul" else list(answer["probabilities"].values())


class Bare(Way):
    """llama.cpp's `/completion`."""

    def complete(self, prompt, *, reuse, labels=()):
        body = {"prompt": prompt, "n_predict": 1, "cache_prompt": reuse, "samplers": ["temperature"], "temperature": 1}
        if labels:
            bias = [[label, LABEL_BIAS] for label in labels]
            body |= {"n_probs": len(labels), "post_sampling_probs": True, "logit_bias": bias}
        body["response_fields"] = ["timings", "completion_probabilities"]
        return self.post("/completion", json=body)["timings"]["prompt_n"]


class Limit(Bare):
    """The tokens that have to be computed at least, as one prompt."""

    def cold(self, asked):
        return self.timed(lambda: self.complete(asked.unique, reuse=False))

    def warm(self, asked):
        self.complete(asked.prefix, reuse=True)
        computed = []
        took = self.timed(lambda: computed.append(self.complete(asked.unique, reuse=True)))
        if computed != [len(asked.unique) - len(asked.prefix)]:
            raise RuntimeError(f"llama.cpp computed {computed} tokens behind a prefix of {len(asked.prefix)}")
        return took


class WholePrompts(Bare):
    """A prompt per question, the state in each."""

    def cold(self, asked):
        chosen = asked.suffixes[:WHOLE_PROMPTS]
        took = self.timed(lambda: [self.one(asked.prefix, suffix) for suffix in chosen])
        tokens = [sum(len(asked.prefix) + len(suffix) for suffix in some) for some in (asked.suffixes, chosen)]
        return took.times(tokens[0] / tokens[1])

    def one(self, prefix, suffix):
        self.complete([*prefix, *suffix], reuse=False, labels=(49, 50, 51))


@contextmanager
def fastest(model, threads, prompt, settings, rounds):
    """Of servers with these settings, the one that answers fastest: `(settings, server)`. The others are ended.

    Args:
        model: A GGUF.
        threads: Of each.
        prompt: What a way does with its server for the comparison.
        settings: Of each server.
        rounds: The least time of so many counts; the first round is not counted.
    """
    with ExitStack() as kept:
        with ExitStack() as stack:
            servers = [stack.enter_context(llamacpp(model, threads=threads, **one)) for one in settings]
            least = [float("inf")] * len(settings)
            for turn in range(rounds + 1):
                for index, server in enumerate(servers):
                    began = time.perf_counter()
                    prompt(server, turn)
                    if turn:
                        least[index] = min(least[index], time.perf_counter() - began)
        chosen = settings[least.index(min(least))]
        server = kept.enter_context(llamacpp(model, threads=threads, **chosen))
        yield chosen, server
