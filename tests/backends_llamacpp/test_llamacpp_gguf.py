"""GGUF headers: what is read of them, and that no file does worse than to be refused."""

from __future__ import annotations

import math
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openjev_core.backends.llamacpp import gguf as gguf_module
from openjev_core.backends.llamacpp.gguf import GgufHeader, read_header
from openjev_core.errors import StartupError

TOKENS = ["<unk>", "<|im_start|>", "<|im_end|>", "a", "<think>", "ü"]
TYPES = [2, 3, 1, 1, 4, 1]
TOKENS_KEY, TYPES_KEY = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"


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


def with_context(kind, value):
    return gguf(drop=["toy.context_length"], extra=[entry("toy.context_length", kind, value)])


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
        (gguf()[:200], "'toy.scales': it ends in the middle of its header"),
        (gguf(drop=["tokens"]), "it has no tokenizer.ggml.tokens"),
        (gguf(drop=["types"]), "it has no tokenizer.ggml.token_type"),
        (gguf(drop=["toy.context_length"]), "it has no toy.context_length"),
        (gguf(drop=["general.architecture"]), "it has no general.architecture"),
        (gguf(extra=[entry("x", 99, b"")]), "field 10 of 10, 'x': a value of the unknown type 99"),
        (gguf(extra=[entry("x", 9, array(99, 1, b""))]), "'x': a value of the unknown type 99"),
        (gguf(extra=[entry("x", 9, array(8, 2**60, b""))]), f"'x': an array of {2**60} elements; at most 4194304"),
        (gguf(extra=[entry("x", 9, array(0, 2**60, b""))]), "'x': it ends in the middle"),
        (gguf(extra=[entry("x", 8, struct.pack("<Q", 2**62))]), "'x': it ends in the middle"),
        (gguf(extra=[entry("x", 9, array(9, 1, b"") * 9)]), "'x': arrays in arrays, more than 4 deep"),
        (gguf(extra=[struct.pack("<Q", 1) + b"\xff"]), "field 10 of 10, its name: 'utf-8' codec can't decode"),
        (with_context(6, struct.pack("<f", math.inf)), "toy.context_length is no integer"),
        (with_context(7, b"\1"), "toy.context_length is no integer"),
        (with_context(5, struct.pack("<i", -1)), "toy.context_length is -1"),
        (gguf(drop=["types"], extra=[entry(TYPES_KEY, 9, array(5, 1, bytes(4)))]), "has 1 elements, and .* 6"),
        (gguf(drop=["tokens"], extra=[entry(TOKENS_KEY, 9, array(0, 6, bytes(6)))]), "is no array of texts"),
        (gguf(drop=["tokens"], extra=[entry(TOKENS_KEY, 8, text("x"))]), "tokenizer.ggml.tokens is no array"),
        (gguf(drop=["eos"], extra=[entry("tokenizer.ggml.eos_token_id", 8, text("x"))]), "eos_token_id is no integer"),
    ],
)
def test_a_file_that_is_none_is_refused_by_name_and_field(tmp_path, content, complaint):
    with pytest.raises(StartupError, match=rf"model\.gguf.*{complaint}") as refused:
        header_of(tmp_path, content)
    assert 1 == len(str(refused.value).splitlines())


class TestFilesThatClaimMore:
    """A sparse file takes no place, whatever it claims: what is read of one is counted, and little is kept."""

    @pytest.fixture(autouse=True)
    def _little_is_kept(self):
        tracemalloc.start()
        yield
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 16 * 2**20

    @staticmethod
    def sparse(tmp_path, beginning, size=2**26):
        path = tmp_path / "model.gguf"
        with path.open("wb") as file:
            file.write(beginning)
            file.truncate(size)
        return path

    @pytest.mark.parametrize(
        ("beginning", "complaint"),
        [
            (
                gguf(drop=["types"], extra=[entry(TYPES_KEY, 9, array(0, 2 * 10**9, b""))]),
                "an array of 2000000000",
            ),
            (gguf(extra=[entry("x", 9, array(8, 2 * 10**9, b""))]), "'x': an array of 2000000000 elements"),
            (gguf(extra=[entry("x", 9, array(9, 2 * 10**9, b""))]), "'x': an array of 2000000000 elements"),
            (struct.pack("<4sIQQ", b"GGUF", 3, 0, 2**60), f"it claims {2**60} fields, and at most 65536 are read"),
            (struct.pack("<4sIQQ", b"GGUF", 3, 0, 65536), "it has no general.architecture"),
            (gguf(extra=[struct.pack("<Q", 2**39)]), "field 10 of 10, its name: more than 67108864 bytes of text"),
            (gguf(drop=["tokens"], extra=[entry(TOKENS_KEY, 8, struct.pack("<Q", 2**39))]), "more than 67108864 bytes"),
        ],
    )
    def test_are_refused(self, tmp_path, beginning, complaint):
        with pytest.raises(StartupError, match=complaint):
            read_header(self.sparse(tmp_path, beginning))

    def test_may_hold_a_long_array_that_nobody_needs(self, tmp_path):
        skipped = entry("x", 9, array(0, 2**30, b""))
        beginning = gguf(extra=[skipped])
        path = self.sparse(tmp_path, beginning, len(beginning) + 2**30)
        assert 2048 == read_header(path).context_length

    def test_are_counted_over_all_arrays(self, tmp_path, monkeypatch):
        monkeypatch.setattr(gguf_module, "MAX_ELEMENTS", 15)
        # Two languages, one array in another and its text, six tokens, six types: sixteen.
        with pytest.raises(StartupError, match=r"'tokenizer.ggml.token_type': an array of 6 elements; at most 15"):
            header_of(tmp_path, gguf())
        monkeypatch.setattr(gguf_module, "MAX_ELEMENTS", 16)
        assert 2048 == header_of(tmp_path, gguf()).context_length


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
