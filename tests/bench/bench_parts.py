"""The parts of a request that no server of this kind can do without, each measured alone, on the same texts.

One render of the chat template, one encode of the prompt's text (state, directive and every question once) by the
`tokenizers` library as it comes, and as many bare calls to the backend as the default fan-out makes (a warm-up and one
batch, or one call for one branch), by the leanest client: raw sockets, no checks. Texts and token ids are those of the
server under measurement, which shows them on `/v1/prompts`.
"""

from __future__ import annotations

import asyncio
import functools
import random
import time

import httpx
import orjson
from attrs import frozen
from bench_client import read_answer
from bench_requests import body, state
from tokenizers import Tokenizer

from openjev_core.prompts.chat import question_turn
from openjev_core.prompts.template import compile_template
from openjev_core.prompts.tokenizer import load_tokenizer
from openjev_core.question import ENGLISH

REPEATS = 40


@frozen
class Written:
    """What the server under measurement wrote for a request.

    Attributes:
        text: Its prompt's text, each suffix once.
        prefix: Token ids.
        suffixes: Token ids of each branch.
        labels: How many labels each branch has.
    """

    text: str
    prefix: list[int]
    suffixes: list[list[int]]
    labels: list[int]


def written(url, request):
    """Ask a server what it writes for a request."""
    answer = httpx.post(f"{url}/v1/prompts", content=request, headers={"content-type": "application/json"}, timeout=60)
    shown = answer.raise_for_status().json()
    branches = shown["branches"]
    return Written(
        shown["prefix"] + "".join(branch["prompt"].removeprefix(shown["prefix"]) for branch in branches),
        [token["id"] for token in shown["prefix_tokens"]],
        [[token["id"] for token in branch["tokens"]] for branch in branches],
        [len(branch["labels"]) for branch in branches],
    )


@functools.cache
def tools(model):
    """The library's tokenizer, and the model's compiled template."""
    _, template = load_tokenizer(str(model))
    return Tokenizer.from_file(str(model / "tokenizer.json")), compile_template(template)


def measure(model, backend, server, *, tokens, asked, seed):
    """CPU milliseconds of each part."""
    tokenizer, renderer = tools(model)
    chance = random.Random(seed)
    states = [state(tokens, chance) for _ in range(REPEATS)]
    shown = written(server, body(states[0], asked))
    texts = [shown.text.replace(states[0], text) for text in states]
    turns = [
        [{"role": "user", "content": text}, {"role": "user", "content": question_turn(ENGLISH)}] for text in states
    ]
    return {
        "render": cpu_ms(lambda index: renderer.render(turns[index])),
        "encode": cpu_ms(lambda index: tokenizer.encode(texts[index], add_special_tokens=False).ids),
        "calls": asyncio.run(bare_calls(backend, shown)),
    }


def cpu_ms(work):
    began = time.process_time()
    for index in range(REPEATS):
        work(index)
    return (time.process_time() - began) / REPEATS * 1000


FIELDS = (
    b'"sampling_params":{"max_new_tokens":1,"temperature":0},'
    b'"return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":0}'
)


async def bare_calls(url, shown):
    """CPU milliseconds, of this side alone, for these calls: ids to JSON, sent, and the answer parsed."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    began = time.process_time()
    for turn in range(REPEATS):
        for content in call_bodies(shown, f"{turn:032x}"):
            await call(reader, writer, content)
    spent = time.process_time() - began
    writer.close()
    return spent / REPEATS * 1000


def call_bodies(shown, rid):
    """The calls of the default fan-out: a warm-up and one batch, or the one branch."""
    prefix = orjson.dumps(shown.prefix)[1:-1]
    if len(shown.suffixes) > 1:
        yield b'{"rid":"w%b","input_ids":[%b],"token_ids_logprob":[0],%b' % (rid.encode(), prefix, FIELDS)
    if len(shown.suffixes) == 1:
        ids, labels = b"%b,%b" % (prefix, orjson.dumps(shown.suffixes[0])[1:-1]), [*range(shown.labels[0])]
    else:
        ids = b",".join([b"[%b,%b]" % (prefix, orjson.dumps(suffix)[1:-1]) for suffix in shown.suffixes])
        labels = [[*range(count)] for count in shown.labels]
    fields = (rid.encode(), ids, orjson.dumps(labels), FIELDS)
    yield b'{"rid":"b%b","input_ids":[%b],"token_ids_logprob":%b,%b' % fields


async def call(reader, writer, content):
    writer.write(
        b"POST /generate HTTP/1.1\r\nHost: double\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (len(content), content)
    )
    status, answer, _ = await read_answer(reader)
    if status != 200:
        raise RuntimeError(f"the double answered {status}: {answer[:300]!r}")
    return orjson.loads(answer)
