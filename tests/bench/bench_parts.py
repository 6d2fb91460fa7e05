"""The parts of a request that no server of this kind can do without, each measured alone.

One render of the chat template, one encode of the same text by the `tokenizers` library, and as many bare calls to the
backend as the default fan-out makes (a warm-up and one batch), by the leanest client: raw sockets and prepared bodies.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
import time

import orjson
from bench_client import read_answer
from bench_requests import questions, state
from tokenizers import Tokenizer

from openjev_core.prompts.template import compile_template
from openjev_core.prompts.tokenizer import load_tokenizer

REPEATS = 20


@functools.cache
def tools(model):
    """The library's tokenizer, and the model's compiled template."""
    _, template = load_tokenizer(str(model))
    return Tokenizer.from_file(str(model / "tokenizer.json")), compile_template(template)


def measure(model, url, *, tokens, asked, seed):
    """CPU milliseconds of each part."""
    tokenizer, renderer = tools(model)
    chance = random.Random(seed)
    states = [state(tokens, chance) for _ in range(REPEATS)]
    suffixes = "\n".join(words_of(question) for question in questions(asked).values())
    turns = [[{"role": "user", "content": text}, {"role": "user", "content": "Question:"}] for text in states]
    rendered = [renderer.render(messages) for messages in turns]
    render = cpu_ms(lambda index: renderer.render(turns[index]))
    encode = cpu_ms(lambda index: tokenizer.encode(rendered[index] + suffixes, add_special_tokens=False).ids)
    prefix = tokenizer.encode(rendered[0], add_special_tokens=False).ids
    suffix = tokenizer.encode(suffixes, add_special_tokens=False).ids
    calls = asyncio.run(bare_calls(url, prefix, [suffix[index::asked] for index in range(asked)]))
    return {"render": render, "encode": encode, "calls": calls}


def words_of(question):
    """A question's words and options, as text of about the length that its suffix has."""
    return json.dumps(question)


def cpu_ms(work):
    began = time.process_time()
    for index in range(REPEATS):
        work(index)
    return (time.process_time() - began) / REPEATS * 1000


FIELDS = b'"sampling_params":{"max_new_tokens":1,"temperature":0},"return_logprob":true,"logprob_start_len":-1}'
LABELS = [0, 1, 2]


async def bare_calls(url, prefix, suffixes):
    """CPU milliseconds, of this side alone, for a warm-up and one batch: ids to JSON, sent, and the answer parsed."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    began = time.process_time()
    for turn in range(REPEATS):
        head = orjson.dumps(prefix)[1:-1]
        await call(reader, writer, b'{"rid":"w%d","input_ids":[%b],"token_ids_logprob":[0],%b' % (turn, head, FIELDS))
        members = b",".join([b"[%b,%b]" % (head, orjson.dumps(ids)[1:-1]) for ids in suffixes])
        labels = orjson.dumps([LABELS] * len(suffixes))
        rids = orjson.dumps([f"b{turn}-{index}" for index in range(len(suffixes))])
        await call(
            reader, writer, b'{"rid":%b,"input_ids":[%b],"token_ids_logprob":%b,%b' % (rids, members, labels, FIELDS)
        )
    spent = time.process_time() - began
    writer.close()
    return spent / REPEATS * 1000


async def call(reader, writer, body):
    writer.write(
        b"POST /generate HTTP/1.1\r\nHost: double\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    status, answer, _ = await read_answer(reader)
    if status != 200:
        raise RuntimeError(f"the double answered {status}: {answer[:300]!r}")
    return orjson.loads(answer)
