"""What SGLang says about a call is held against what was asked."""

from __future__ import annotations

import math

import orjson
import pytest

from openjev_core.backends.protocol import Reading
from openjev_core.backends.sglang.wire import parse_one, read_element
from openjev_core.errors import BackendError

MASS = pytest.approx(math.exp(-0.5) + math.exp(-1.5))


def read(**meta):
    answer = {"id": "rid", "prompt_tokens": 12, "output_token_ids_logprobs": [[[-0.5, 7, None], [-1.5, 5, None]]]}
    return read_element(parse_one(orjson.dumps({"meta_info": answer | meta})), (7, 5), rid="rid", prompt_tokens=12)


def test_counts_are_taken_over():
    expected = Reading((-0.5, -1.5), prompt_tokens=12, cached_tokens=12, output_tokens=1, label_mass=MASS)
    assert expected == read(completion_tokens=1, cached_tokens=12)


def test_what_a_front_end_does_not_tell():
    assert Reading((-0.5, -1.5), prompt_tokens=12, cached_tokens=None, output_tokens=1, label_mass=MASS) == read()


@pytest.mark.parametrize("count", [0, 2, -3, 10**18])
def test_another_number_of_output_tokens_than_was_asked_for(count):
    with pytest.raises(BackendError, match=f"reports {count} output tokens, asked was 1"):
        read(completion_tokens=count)


@pytest.mark.parametrize("count", [-5, 13])
def test_more_reused_than_there_is_or_less_than_nothing(count):
    with pytest.raises(BackendError, match=f"reports {count} cached tokens of 12"):
        read(cached_tokens=count)
