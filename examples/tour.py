"""A tour of openjev, in a few minutes on its demo model.

    uv run python examples/tour.py

It prints what each step is for, and what came out. The demo model is no classifier: watch the shapes, not the answers.
Settings are read from the environment: OPENJEV_MODEL=model.gguf has another model answer.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from openjev_core import SyncEngine, load_registry, load_settings

OPENJEV = Path(sys.executable).with_name("openjev")
PLUGIN = Path(__file__).parent / "plugins" / "openjev-abstain" / "openjev_abstain" / "__init__.py"

TICKET = "I was charged twice for one order, and nobody has answered me for a week."
REFUND = {"type": "noul", "instructions": "Does the writer ask for money back?"}
TEAM = {
    "type": "choice",
    "instructions": "Which team should handle this?",
    "criteria": {"billing": "Payments and invoices", "technical": "Bugs and outages"},
}
ANGER = {"type": "score", "instructions": "How angry is the writer?", "criteria": ["calm", "annoyed", "furious"]}


def step(title):
    print(f"\n== {title}")


def ask(engine):
    step("One question: a probability, read from the model's first output token")
    evaluation = engine.evaluate(state=TICKET, questions={"refund": REFUND})
    print(f"refund: {evaluation.answers['refund']['noul']:.2f}")

    step("Several questions: the state is read once for all of them")
    evaluation = engine.evaluate(state=TICKET, questions={"refund": REFUND, "team": TEAM, "anger": ANGER})
    print(f"team: {evaluation.answers['team']['probabilities']}")
    print(f"anger: {evaluation.answers['anger']['score']:.2f} of 2")
    print(f"tokens: {evaluation.usage.input_tokens} read, {evaluation.usage.cached_tokens} of them for the second time")

    step("A chat as the state")
    chat = [
        {"role": "user", "content": "My card was charged twice."},
        {"role": "assistant", "content": "I am sorry. I have returned one of the payments."},
        {"role": "user", "content": "Thank you, that was quick."},
    ]
    evaluation = engine.evaluate(state=chat, questions={"anger": ANGER})
    print(f"anger: {evaluation.answers['anger']['score']:.2f} of 2")

    step("Orders: the same question with its options in each order, averaged")
    evaluation = engine.evaluate(state=TICKET, questions={"team": TEAM}, orders="full", detail=True)
    print(f"team: {evaluation.answers['team']['probabilities']}")
    print(f"how far the orders disagreed: {evaluation.answers['team']['x_order_spread']:.2f}")

    step("A plugin, here one file: a choice that may say that no option fits")
    question = {**TEAM, "type": "abstain"}
    answer = engine.evaluate(state="The weather is fine.", questions={"team": question}).answers["team"]
    print(f"no option fits: {answer['none_of_these']:.2f}, cannot tell: {answer['cannot_tell']:.2f}")


def labelled_rows():
    """Tickets of which the team is known, as one has them of a help desk's past."""
    who = ["I", "We", "My colleague and I", "Our whole office", "Everyone here"]
    when = ["today", "since Monday", "for a week", "again", "after the update"]
    what = {
        "billing": ["paid an invoice twice", "got a wrong bill"],
        "technical": ["cannot sign in", "see an error at every export"],
    }
    for person, time, (team, problems) in itertools.product(who, when, what.items()):
        for problem in problems:
            yield {"state": f"{person} {problem} {time}.", "questions": {"team": TEAM}, "labels": {"team": team}}


def run(*arguments):
    """Run the command line, and show the first lines of what it says."""
    print("$ openjev", *arguments)
    result = subprocess.run([OPENJEV, *arguments], check=True, capture_output=True, text=True)
    print("\n".join((result.stdout or result.stderr).splitlines()[:12]))


def trust(settings, folder):
    rows = list(labelled_rows())
    data, calibration = folder / "tickets.jsonl", folder / "calibration.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--run", str(folder / "run.jsonl")]

    step(f"A labelled file of {len(rows)} rows: is the model better than the commonest label?")
    run("eval", str(data), "--no-reorder", *flags)

    step("A calibration, and a threshold above which nine answers of ten are right")
    scores = str(folder / "scores.jsonl")
    run("calibrate", str(data), "--guarantee", "0.9", "--out", str(calibration), "--run", scores)

    step("With it, an answer says whether it is accepted")
    with SyncEngine(attrs.evolve(settings, calibration=str(calibration))) as engine:
        answer = engine.evaluate(state=TICKET, questions={"team": TEAM}).answers["team"]
    print(f"team: {answer['choice']}, calibrated by {answer['x_calibration']}, accepted: {answer['x_accept']}")


def main():
    settings = load_settings(os.environ).settings
    with SyncEngine(settings, registry=load_registry(files=[str(PLUGIN)])) as engine:
        ask(engine)
    with TemporaryDirectory() as folder:
        trust(settings, Path(folder))


if __name__ == "__main__":
    main()
