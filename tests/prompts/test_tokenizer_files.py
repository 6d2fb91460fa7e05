"""A model's directory is read as it is, and told by file name when it will not do."""

from __future__ import annotations

import json

import pytest
from tiny_tokenizer import TEMPLATE, write_tiny_tokenizer

from openjev_core.errors import StartupError
from openjev_core.prompts.tokenizer import load_tokenizer


@pytest.fixture
def model(tmp_path):
    return write_tiny_tokenizer(tmp_path / "tiny")


def config(model, **values):
    (model / "tokenizer_config.json").write_text(json.dumps(values))


def test_a_directory_is_enough(model):
    tokenizer, template = load_tokenizer(str(model))
    assert (TEMPLATE, "", "<|im_end|>") == (template.source, template.bos_token, template.eos_token)
    assert {"<|im_start|>", "<|im_end|>"} == set(tokenizer.control_tokens)
    assert tokenizer.vocab_size == 1 + max(tokenizer.control_tokens.values())
    text = "<|im_start|>é 🙂\n"
    plain, control = tokenizer.encode(text), tokenizer.encode(text, control=True)
    assert text == tokenizer.decode(plain) == tokenizer.decode(control)
    assert tokenizer.control_tokens["<|im_start|>"] == control[0]
    assert not set(tokenizer.control_tokens.values()) & set(plain)


def test_special_tokens_may_be_records(model):
    config(model, bos_token={"content": "<s>", "lstrip": False}, eos_token=None)
    template = load_tokenizer(str(model))[1]
    assert ("<s>", "") == (template.bos_token, template.eos_token)


def test_the_template_may_stand_in_the_config(model):
    (model / "chat_template.jinja").unlink()
    config(model, chat_template="one")
    assert "one" == load_tokenizer(str(model))[1].source
    config(model, chat_template=[{"name": "tool_use", "template": "two"}, {"name": "default", "template": "three"}])
    assert "three" == load_tokenizer(str(model))[1].source


def test_a_config_is_not_needed(model):
    (model / "tokenizer_config.json").unlink()
    assert "" == load_tokenizer(str(model))[1].eos_token


def test_truncation_and_padding_are_none_of_ours(model):
    definition = json.loads((model / "tokenizer.json").read_text())
    definition["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    definition["padding"] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                             "pad_type_id": 0, "pad_token": "<|im_end|>"}  # fmt: skip
    (model / "tokenizer.json").write_text(json.dumps(definition))
    tokenizer = load_tokenizer(str(model))[0]
    assert 5 == len(tokenizer.encode("a b c")) == len(tokenizer.encode("a b c", control=True))


FAULTS = {
    "no tokenizer": (lambda m: (m / "tokenizer.json").unlink(), "tokenizer.json is missing"),
    "no JSON": (lambda m: (m / "tokenizer.json").write_text("{"), "tokenizer.json is not JSON"),
    "no object": (lambda m: (m / "tokenizer.json").write_text("[]"), "tokenizer.json holds no JSON object"),
    "no tokenizer's JSON": (
        lambda m: (m / "tokenizer.json").write_text("{}"),
        "tokenizer.json cannot be read by the tokenizers library",
    ),
    "config is no JSON": (lambda m: (m / "tokenizer_config.json").write_text("x"), "tokenizer_config.json is not JSON"),
    "no template": (
        lambda m: (m / "chat_template.jinja").unlink(),
        "no chat template, neither chat_template.jinja nor",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_what_will_not_do_is_told_by_file(model, what):
    change, said = FAULTS[what]
    change(model)
    with pytest.raises(StartupError, match=said):
        load_tokenizer(str(model))


def test_a_name_that_cannot_be_fetched(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants  # noqa: PLC0415 - read when it is first imported

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(StartupError, match="the tokenizer of 'no/such-model' at revision abc is no local directory"):
        load_tokenizer("no/such-model", "abc")
