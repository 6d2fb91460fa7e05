"""A model's directory is read as it is, and told by file name when it will not do."""

from __future__ import annotations

import json
import os

import pytest
from tiny_tokenizer import TEMPLATE, write_tiny_tokenizer

from openjev_core.errors import StartupError
from openjev_core.prompts.marks import ControlTokens
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


def broken(name, content):
    """A change that gives a model's file this content."""
    return lambda model: (model / name).write_bytes(content)


def piped(name):
    def change(model):
        (model / name).unlink()
        os.mkfifo(model / name)

    return change


def templates(*values):
    """A change after which the config alone has templates, and this list of them."""

    def change(model):
        (model / "chat_template.jinja").unlink()
        config(model, chat_template=list(values))

    return change


def sparse(model):
    with (model / "tokenizer.json").open("wb") as file:
        file.truncate(2**40)


NO_TEMPLATE = "tokenizer_config.json: chat_template: expected text, or a list of objects with name and template"
FAULTS = {
    "tokenizer of brackets": (broken("tokenizer.json", b"[" * 100_000), "tokenizer.json is nested too deep"),
    "config of brackets": (
        broken("tokenizer_config.json", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        "tokenizer_config.json is nested too deep",
    ),
    "brackets that Python reads": (
        broken("tokenizer.json", b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}"),
        "tokenizer.json cannot be read by the tokenizers library",
    ),
    "no text": (broken("tokenizer.json", b"\xff\xfe\xfd"), "tokenizer.json is not JSON"),
    "a pipe": (piped("tokenizer.json"), "tokenizer.json is no plain file"),
    "a template that is a pipe": (piped("chat_template.jinja"), "chat_template.jinja is no plain file"),
    "a terabyte": (sparse, "tokenizer.json has 1099511627776 bytes; at most 268435456 are read"),
    "a template that is no text": (broken("chat_template.jinja", b"a\xff"), "chat_template.jinja is no UTF-8: .* 1$"),
    "templates without names": (templates({"x": 1}), NO_TEMPLATE),
    "templates that are names": (templates("a"), NO_TEMPLATE),
    "no template by default": (templates({"name": "tool_use", "template": "x"}), NO_TEMPLATE),
    "a template by default that is none": (templates({"name": "default", "template": 3}), NO_TEMPLATE),
    "a template that is a number": (lambda m: (templates()(m), config(m, chat_template=3)), NO_TEMPLATE),
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
    with pytest.raises(StartupError, match=said) as refused:
        load_tokenizer(str(model))
    assert 1 == len(str(refused.value).splitlines())


def test_a_long_control_token(model):
    definition = json.loads((model / "tokenizer.json").read_text())
    definition["added_tokens"].append({**definition["added_tokens"][0], "content": "<" * 6000, "id": 400})
    (model / "tokenizer.json").write_text(json.dumps(definition))
    with pytest.raises(StartupError, match="the tokenizer has a control token of 6000 characters"):
        ControlTokens(load_tokenizer(str(model))[0].control_tokens)


def test_a_name_that_no_file_can_have():
    with pytest.raises(StartupError, match=r"model: cannot read 'x+': File name too long"):
        load_tokenizer("x" * 5000)


def test_a_name_that_cannot_be_fetched(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants  # noqa: PLC0415 - read when it is first imported

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(StartupError, match="the tokenizer of 'no/such-model' at revision abc is no local directory"):
        load_tokenizer("no/such-model", "abc")
