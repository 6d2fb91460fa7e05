"""The scripted engine answers what the script says, and shows it the whole prompt."""

from __future__ import annotations

import asyncio
import re

import attrs
import httpx
import openjev_noul
import pytest

from openjev_core import Option, Readout
from openjev_core.errors import StartupError
from openjev_core.testing import rendered_prompts, scripted_engine
from openjev_core.testing.live import live_server

(NOUL,) = openjev_noul.openjev_question_types()
SIDES = (Option(key="a", text="one"), Option(key="b", text="two"))
QUESTION = {"type": "noul", "instructions": "Is it so?"}


def test_the_script_sees_the_prompt_and_the_labels_in_given_order():
    seen = []

    def script(prompt, labels):
        seen.append((prompt, list(labels)))
        return [0.75, 0.25]

    engine = scripted_engine(NOUL, script=script)

    evaluation = asyncio.run(engine.evaluate(state="A state.", questions={"q": QUESTION}))

    assert pytest.approx(0.75) == evaluation.answers["q"]["noul"]
    ((prompt, labels),) = seen
    assert ["Yes", "No"] == labels
    assert prompt.startswith("<|im_start|>user\nA state.<|im_end|>\n")
    assert prompt.endswith("<|im_start|>assistant\nAnswer:\n")


def test_rendered_prompts_show_each_readout_once():
    text = rendered_prompts(NOUL, openjev_noul.Noul(instructions="Is it so?"), state="Words.")

    assert 1 == text.count("=== readout")
    assert 1 == text.count("Words.")
    assert "\nQuestion:\n=== readout 0 ===\n Is it so?\n\nOptions:\nYes: the answer is yes\n" in text


def test_rendered_prompts_show_every_round():
    def readouts(question):
        (found,) = yield [Readout(text="First?", options=SIDES)]
        yield Readout(text=f"After {found.top.key}?", options=SIDES)

    kind = attrs.evolve(NOUL, readouts=readouts)
    question = openjev_noul.Noul(instructions="?")

    shown = rendered_prompts(kind, question, script=lambda prompt, labels: [0.25, 0.75])

    assert ["=== prefix, shared by 2 readouts ===", "=== readout 0 ==="] == re.findall("===.*===", shown)[:2]
    assert ["=== round 2, asked once these were read ===", "=== readout 1 ==="] == re.findall("===.*===", shown)[2:]
    assert "=== readout 1 ===\n After b?\n\nOptions:\nA: one" in shown
    assert "After a?" in rendered_prompts(kind, question)


def test_a_live_server_answers_by_script(openjev_server):
    url = openjev_server(NOUL, script=lambda prompt, labels: [0.125, 0.875])

    response = httpx.post(
        f"{url}/v1/systemone", json={"model": "jev-latest", "state": "", "questions": {"q": QUESTION}}
    )

    assert 200 == response.status_code
    assert pytest.approx(0.125) == response.json()["answers"]["q"]["noul"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_live_server_that_does_not_start_says_so():
    """Also while its thread is still telling why."""

    def make_engine():
        raise StartupError("no model")

    with pytest.raises(RuntimeError, match="did not start"), live_server(make_engine):
        pass
