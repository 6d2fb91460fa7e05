"""GGUF headers: what is read of them, and that no file does worse than to be refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openjev_core.backends.llamacpp.gguf import GgufHeader, read_header
from openjev_core.errors import StartupError

TOKENS = ["<unk>", "<|im_start|>", "<|im_end|>", "a", "<think>", "ü"]
TYPES = [2, 3, 1, 1, 4, 1]


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def array(kind, count, elements):
    return struct.pack("<IQ", kind, count) + elements


def gguf(*, version=3, extra=(), drop=()):
    entries = {
        "general.architecture": entry("general.architecture", 8, text("toy")),
        "general.languages": entry("general.languages", 9, array(8, 2, text("en") + text("bn"))),
        "toy.context_length": entry("toy.context_length", 4, struct.pack("<I", 2048)),
        "toy.scales": entry("toy.scales", 9, array(6, 3, struct.pack("<3f", 1, 2, 3))),
        "toy.nested": entry("toy.nested", 9, array(9, 1, array(8, 1, text("deep")))),
        "toy.flag": entry("toy.flag", 7, b"\1"),
        "tokens": entry("tokenizer.ggml.tokens", 9, array(8, len(TOKENS), b"".join(map(text, TOKENS)))),
        "types": entry("tokenizer.ggml.token_type", 9, array(5, len(TYPES), struct.pack(f"<{len(TYPES)}i", *TYPES))),
        "eos": entry("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2)),
    }
    kept = [value for name, value in entries.items() if name not in drop]
    return struct.pack("<4sIQQ", b"GGUF", version, 0, len(kept) + len(extra)) + b"".join([*kept, *extra])


def header_of(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return read_header(path)


@pytest.mark.parametrize("version", [2, 3])
def test_the_context_the_vocabulary_and_its_special_tokens_are_read(tmp_path, version):
    expected = GgufHeader(
        context_length=2048,
        tokens=tuple(TOKENS),
        special={"<unk>": 0, "<|im_start|>": 1, "<think>": 4, "<|im_end|>": 2},
    )
    assert expected == header_of(tmp_path, gguf(version=version))


def test_the_demo_models_header_is_read(demo_engine):
    assert (8192, 49152, 17) == (
        demo_engine.header.context_length,
        len(demo_engine.header.tokens),
        len(demo_engine.header.special),
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "no complete GGUF"),
        (b"PK\3\4" + bytes(100), r"no GGUF file: it begins with b'PK\\x03\\x04'"),
        (gguf(version=1), "GGUF version 1; versions 2 and 3"),
        (gguf(version=0x03000000), "versions 2 and 3 in little-endian order"),
        (gguf()[:200], "no complete GGUF"),
        (gguf(drop=["tokens"]), "KeyError: 'tokenizer.ggml.tokens'"),
        (gguf(drop=["toy.context_length"]), "KeyError: 'toy.context_length'"),
        (gguf(extra=[entry("x", 99, b"")]), "KeyError: 99"),
        (gguf(extra=[entry("x", 9, array(8, 2**60, b""))]), "an array that cannot be"),
        (gguf(extra=[entry("x", 8, struct.pack("<Q", 2**62))]), "ends in the middle"),
        (gguf(extra=[entry("x", 9, array(9, 1, b"") * 9)]), "an array that cannot be"),
    ],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path, content, complaint):
    with pytest.raises(StartupError, match=rf"model\.gguf.*{complaint}"):
        header_of(tmp_path, content)


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(StartupError, match=r"cannot read the model file .*none\.gguf: No such file"):
        read_header(tmp_path / "none.gguf")


@given(st.integers(0, len(gguf()) - 1), st.binary(max_size=12), st.booleans())
def test_damage_is_refused_or_read_past(tmp_path_factory, at, bytes_, cut):
    whole = gguf()
    damaged = whole[:at] + bytes_ + (b"" if cut else whole[at + len(bytes_) :])
    try:
        header = header_of(tmp_path_factory.mktemp("damaged"), damaged)
    except StartupError:
        return
    assert header.tokens
