"""The demo model's fast form: what is in it, that it is made once, and what happens where it cannot be had."""

from __future__ import annotations

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest
from filelock import FileLock

from openjev_core.backends.llamacpp import demo_model_path
from openjev_core.backends.llamacpp import fast_demo_model as fast
from openjev_core.backends.llamacpp.gguf import read_header

FALLS_BACK = "the demo model is read as it is shipped, .* because its faster form cannot be had: "


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache directory, empty."""
    monkeypatch.setattr(fast, "user_cache_path", lambda name, appauthor: tmp_path / "cache" / name)
    return tmp_path / "cache" / "openjev"


@pytest.fixture
def copied(demo_engine, monkeypatch):
    """In place of computing the file, which takes seconds, it is copied: `(source, target)` of each call."""
    calls = []

    def copy(source, target):
        calls.append((source, target))
        shutil.copyfile(demo_engine.file.path, target)

    monkeypatch.setattr(fast, "requantize", copy)
    return calls


def failing_with(error):
    def fail(source, target):
        target.write_bytes(b"half")
        raise error

    return fail


def test_holds_the_shipped_weights(demo_engine):
    shipped, written = (gguf.GGUFReader(path) for path in (demo_model_path(), demo_engine.file.path))
    assert [t.name for t in shipped.tensors] == [t.name for t in written.tensors]
    kinds = {"Q4_1": "Q8_0", "Q8_0": "Q8_0", "F32": "F32"}
    for before, after in zip(shipped.tensors, written.tensors, strict=True):
        assert (kinds[before.tensor_type.name], before.shape.tolist()) == (
            after.tensor_type.name,
            after.shape.tolist(),
        )
        one, other = (gguf.quants.dequantize(t.data, t.tensor_type).reshape(-1, 32) for t in (before, after))
        # Half a step of 127 on either side, and the rounding of the step itself to half precision.
        assert (np.abs(one - other) <= np.abs(one).max(axis=1, keepdims=True) * 0.0045).all()


def test_says_of_itself_what_the_shipped_model_says(demo_engine):
    assert read_header(demo_model_path()) == read_header(demo_engine.file.path)
    shipped, written = (gguf.GGUFReader(path) for path in (demo_model_path(), demo_engine.file.path))
    said = [
        {name: field.contents() for name, field in one.fields.items() if not name.startswith("GGUF.")}
        for one in (shipped, written)
    ]
    assert said[0] == said[1]


def test_is_computed_byte_for_byte(cache):
    said = []
    path = fast.fast_demo_model(demo_model_path(), said.append)
    assert cache / "SmolLM2-135M-Instruct.Q8_0.gguf" == path
    assert fast.is_fast_demo_model(path)
    assert [f"writing the demo model in a faster format, once: {path} (145 MB)"] == said


class TestIsMadeOnce:
    """And kept, whatever else happens in its folder."""

    def test_and_then_found(self, cache, copied):
        first, said = fast.fast_demo_model(demo_model_path(), lambda _: None), []
        assert first == fast.fast_demo_model(demo_model_path(), said.append)
        assert ([], 1) == (said, len(copied))

    def test_by_starts_at_the_same_time(self, cache, copied):
        with ThreadPoolExecutor(4) as pool:
            paths = set(pool.map(lambda _: fast.fast_demo_model(demo_model_path(), lambda _: None), range(4)))
        assert ({cache / fast.NAME}, 1) == (paths, len(copied))

    def test_again_when_it_is_damaged(self, cache, copied):
        cache.mkdir(parents=True)
        with (cache / fast.NAME).open("wb") as file:
            file.truncate(fast.SIZE)
        assert fast.is_fast_demo_model(fast.fast_demo_model(demo_model_path(), lambda _: None))
        assert 1 == len(copied)

    def test_over_what_a_killed_start_has_left(self, cache, copied):
        fast.fast_demo_model(demo_model_path(), lambda _: None)
        ((_, partial),) = copied
        (cache / fast.NAME).unlink()
        partial.write_bytes(b"half")
        assert fast.is_fast_demo_model(fast.fast_demo_model(demo_model_path(), lambda _: None))
        assert {fast.NAME, f"{fast.NAME}.lock"} >= {path.name for path in cache.iterdir()}


class TestWhereItCannotBeHad:
    """The model is read as it is shipped, and a line says why."""

    def shipped(self, reason):
        said = []
        assert demo_model_path() == fast.fast_demo_model(demo_model_path(), said.append)
        assert re.fullmatch(FALLS_BACK + reason, said[-1])

    def test_without_its_writer(self, cache, monkeypatch):
        monkeypatch.setitem(sys.modules, "gguf", None)
        self.shipped(
            r"import of gguf halted.*; install openjev\[embedded\], or with pip: pip install 'gguf>=0.19,<0.20'"
        )

    def test_without_a_place(self, monkeypatch, tmp_path):
        (tmp_path / "file").touch()
        monkeypatch.setattr(fast, "user_cache_path", lambda *_, **__: tmp_path / "file" / "openjev")
        self.shipped(r".*Not a directory.*")

    def test_without_a_home(self, monkeypatch):
        monkeypatch.setattr(fast, "user_cache_path", lambda *_, **__: Path("~/.cache/openjev"))
        self.shipped(r"there is no home directory for a cache \(found '~/\.cache/openjev'\); set XDG_CACHE_HOME")

    def test_while_another_start_takes_too_long(self, cache, monkeypatch):
        monkeypatch.setattr(fast, "WAIT", 0.01)
        cache.mkdir(parents=True)
        with FileLock(cache / f"{fast.NAME}.lock"):
            self.shipped(r".*\.lock' could not be acquired\.")

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("cannot write")])
    def test_when_writing_fails(self, cache, monkeypatch, error):
        monkeypatch.setattr(fast, "requantize", failing_with(error))
        self.shipped(re.escape(str(error)))
        assert {f"{fast.NAME}.lock"} >= {path.name for path in cache.iterdir()}

    def test_when_other_bytes_come_out(self, cache, monkeypatch):
        monkeypatch.setattr(fast, "requantize", lambda _, target: target.write_bytes(b"GGUF"))
        self.shipped("the package gguf wrote other bytes than it should")
        assert {f"{fast.NAME}.lock"} >= {path.name for path in cache.iterdir()}
