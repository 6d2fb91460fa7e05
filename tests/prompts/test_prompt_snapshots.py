"""Every word and token that a model reads, pinned: one file of bytes per prompt, with its token ids beside it."""

from __future__ import annotations

import pytest
from chatml_model import ALTERNATING, CHATML, PLAIN, chat_template, chatml_tokenizer
from prompt_cases import CASES, TRANSCRIPT, model_of, written


@pytest.fixture(scope="module")
def chatml():
    return model_of(chatml_tokenizer(), chat_template(CHATML))


@pytest.fixture(scope="module")
def smollm2(demo_tokenizer, demo_template):
    return model_of(demo_tokenizer, demo_template)


@pytest.mark.parametrize("model", ["chatml", "smollm2"])
@pytest.mark.parametrize("case", CASES)
def test_prompt(model, case, request, pinned):
    text, ids = written(request.getfixturevalue(model), *CASES[case])
    assert pinned(name="text") == text
    assert pinned(name="ids") == ids


LESS = {
    "folded": (ALTERNATING, TRANSCRIPT[1:2]),
    "folded_parts": (ALTERNATING, [{"role": "user", "content": TRANSCRIPT[-1]["content"]}]),
    "tool_calls_as_text": (PLAIN, TRANSCRIPT),
}


@pytest.mark.parametrize("case", LESS)
def test_prompt_of_a_template_that_takes_less(case, pinned):
    template, state = LESS[case]
    reader = model_of(chatml_tokenizer(), chat_template(template))
    text, ids = written(reader, state, {"type": "noul", "instructions": "Is the customer content?"})
    assert pinned(name="text") == text
    assert pinned(name="ids") == ids
