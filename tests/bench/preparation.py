"""Prompt preparation: rendering and tokenizing, beside one encode of the same text by the `tokenizers` library.

    uv run python tests/bench/preparation.py --model DIR [--quick]

DIR holds a tokenizer and chat template. `first` is what a process that has seen no text takes, whose every word has to
be looked up; `new state` is another state with the same questions; `steady` a further one, after 400,000 characters of
the same kind, as in a server that has been running for a while; `again` repeats it. `library` is one `Tokenizer.encode`
of the unique text (the prefix, and every suffix once) as the library comes, control tokens included. CPU milliseconds
in this process; rounds are interleaved; medians with the rounds' range, and ratios to the library round by round.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
from attrs import evolve
from bench_requests import questions, state
from tokenizers import Tokenizer

from openjev_core.backends.protocol import LoadedModel
from openjev_core.engine.request import KEPT_BYTES
from openjev_core.plugins.registry import load_registry
from openjev_core.prompts.encoding import PlainEncoder
from openjev_core.prompts.pieces import Pieces
from openjev_core.prompts.tokenizer import load_tokenizer
from openjev_core.recent import Recent
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on

RESULTS = Path(__file__).with_name("results")
CELLS = [(tokens, asked) for tokens in (1_000, 8_000, 31_000) for asked in (1, 64)]
WAYS = ("first", "new state", "steady", "again", "library")
STEADY_CHARACTERS = 400_000
"""Text that is read before a round is called steady."""


class NoBackend:
    """Preparing asks nothing of a model."""

    name = "none"
    max_prompt_tokens = 40_000

    @asynccontextmanager
    async def prefix(self, ids, *, key, branches=None):
        raise NotImplementedError
        yield

    async def check(self):
        raise NotImplementedError

    async def aclose(self):
        raise NotImplementedError


def timed(work):
    began = time.process_time()
    done = work()
    return (time.process_time() - began) * 1000, done


def variants_of(prepared):
    return [v for question in prepared.questions.values() for readout in question.readouts for v in readout.variants]


def text_of(prepared):
    prefix = prepared.session.prefix
    return prefix.text + "".join(f" {variant.words}{prefix.ending.text}" for variant in variants_of(prepared))


def round_of(engine, library, tokens, asked, chance):
    """CPU milliseconds of each way, on states of its own."""
    one, other, further = (state(tokens, chance) for _ in range(3))
    reader = engine.reader
    tokenizer = reader.writer.tokenizer
    if tokenizer._pieces is not None:
        tokenizer = evolve(tokenizer, pieces=Pieces(tokenizer._pieces._cut, tokenizer._pieces._library))
    writer = evolve(reader.writer, encoder=PlainEncoder(tokenizer, reader.writer.encoder.alphabet))
    requests = evolve(engine._requests, kept=Recent(KEPT_BYTES))
    planner = evolve(engine._preparation.planner, reader=evolve(reader, writer=writer), requests=requests)

    def prepare(text):
        document = {"model": "jev-latest", "state": text, "questions": questions(asked)}
        return planner.prepare(requests.structure(document))

    spent = {}
    spent["first"], _ = timed(lambda: prepare(one))
    spent["new state"], _ = timed(lambda: prepare(other))
    for _ in range(STEADY_CHARACTERS // len(one)):
        prepare(state(tokens, chance))
    spent["steady"], prepared = timed(lambda: prepare(further))
    spent["again"], again = timed(lambda: prepare(further))
    text = text_of(prepared)
    assert text == text_of(again)
    spent["library"], encoding = timed(lambda: library.encode(text, add_special_tokens=False).ids)
    unique = len(prepared.session.prefix.ids) + sum(len(variant.branch.suffix) for variant in variants_of(prepared))
    # The two differ by the white space at which suffixes were put together.
    assert abs(unique - len(encoding)) <= asked, (unique, len(encoding))
    return spent


def spread(values):
    return f"{statistics.median(values):.2f} [{min(values):.2f}–{max(values):.2f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--quick", action="store_true", help="three rounds instead of nine")
    options = parser.parse_args()
    tokenizer, template = load_tokenizer(str(options.model))
    settings = Settings(max_total_input_tokens=10_000_000)
    engine = engine_on(LoadedModel(NoBackend(), tokenizer, template, "bench"), settings, load_registry())
    library = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    columns = ("state tokens", "questions", *WAYS, "first ÷ library", "steady ÷ library")
    rows = [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    found = []
    chance = random.Random(8)
    for tokens, asked in CELLS:
        rounds = [round_of(engine, library, tokens, asked, chance) for _ in range(3 if options.quick else 9)]
        ratios = [spread([one[way] / one["library"] for one in rounds]) for way in ("first", "steady")]
        cells = [str(tokens), str(asked), *(spread([one[way] for one in rounds]) for way in WAYS), *ratios]
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], flush=True)
        found.append({"state_tokens": tokens, "questions": asked, "rounds": rounds})
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "preparation.json").write_bytes(orjson.dumps(found))
    head = "# Prompt preparation\n\nCPU milliseconds: median [range of the rounds]. See ../preparation.py.\n\n"
    (RESULTS / "preparation.md").write_text(head + "\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()
