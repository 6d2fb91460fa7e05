"""The demo model's fast form: what is in it, that it is made once, and what happens where it cannot be had."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import requires
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import psutil
import pytest
from document_blocks import ROOT
from filelock import FileLock
from packaging.requirements import Requirement
from until import until

from openjev_core.backends.llamacpp import demo_model_path
from openjev_core.backends.llamacpp import fast_demo_model as fast
from openjev_core.backends.llamacpp.demo_model import SHA256
from openjev_core.backends.llamacpp.gguf import read_header
from openjev_core.errors import StartupError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache directory, empty."""
    monkeypatch.setattr(fast, "user_cache_path", lambda name, appauthor: tmp_path / "cache" / name)
    return tmp_path / "cache" / "openjev"


@pytest.fixture
def copied(demo_engine, monkeypatch):
    """In place of computing the file, which takes seconds, it is copied: to where, at each call."""
    calls = []

    def copy(shipped, path):
        assert demo_model_path() == shipped
        assert not path.exists()
        shutil.copyfile(demo_engine.file.path, path)
        calls.append(path)

    monkeypatch.setattr(fast, "write", copy)
    return calls


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Have another script write the file."""

    def script(text):
        path = tmp_path / "script.py"
        path.write_text(f"import sys\nfrom pathlib import Path\ntarget = Path(sys.argv[2])\n{text}\n", "utf-8")
        monkeypatch.setattr(fast.requantizing, "__file__", str(path))

    return script


def names(folder):
    """What is in a folder; some systems leave the lock's file there."""
    return {path.name for path in folder.iterdir()} - {f"{fast.NAME}.lock"}


class TestWhatIsInIt:
    """The shipped model."""

    def test_the_weights(self, demo_engine):
        shipped, written = (gguf.GGUFReader(path) for path in (demo_model_path(), demo_engine.file.path))
        assert [t.name for t in shipped.tensors] == [t.name for t in written.tensors]
        kinds = {"Q4_1": "Q8_0", "Q8_0": "Q8_0", "F32": "F32"}
        for before, after in zip(shipped.tensors, written.tensors, strict=True):
            expected = (kinds[before.tensor_type.name], before.shape.tolist())
            assert expected == (after.tensor_type.name, after.shape.tolist())
        # A layer and more: all of them would take ten seconds, and the file is known byte for byte.
        for before, after in list(zip(shipped.tensors, written.tensors, strict=True))[:12]:
            one, other = (gguf.quants.dequantize(t.data, t.tensor_type).reshape(-1, 32) for t in (before, after))
            # Half a step of 127 on either side, and the rounding of the step itself to half precision.
            assert (np.abs(one - other) <= np.abs(one).max(axis=1, keepdims=True) * 0.0045).all()

    def test_what_it_says_of_itself(self, demo_engine):
        assert read_header(demo_model_path()) == read_header(demo_engine.file.path)
        shipped, written = (
            {name: field.contents() for name, field in gguf.GGUFReader(path).fields.items() if "GGUF." not in name}
            for path in (demo_model_path(), demo_engine.file.path)
        )
        assert shipped == written


class TestIsMadeOnce:
    """And kept, whatever else happens in its folder."""

    def test_byte_for_byte(self, cache):
        said = []
        path = fast.find_demo_model(said.append)
        assert cache / "SmolLM2-135M-Instruct.Q8_0.gguf" == path
        assert fast.is_fast_demo_model(path)
        assert [f"writing the demo model in a faster format, once: {path} (145 MB)"] == said
        assert {fast.NAME} == names(cache)

    def test_and_then_found(self, cache, copied):
        first, said = fast.find_demo_model(lambda _: None), []
        assert first == fast.find_demo_model(said.append)
        assert ([], 1) == (said, len(copied))

    def test_and_found_where_the_shipped_one_is_gone(self, cache, copied, monkeypatch):
        first = fast.find_demo_model(lambda _: None)
        monkeypatch.setattr(fast, "demo_model_path", lambda: pytest.fail("not needed"))
        assert first == fast.find_demo_model(lambda _: None)

    def test_by_starts_at_the_same_time(self, cache, copied):
        with ThreadPoolExecutor(4) as pool:
            paths = set(pool.map(lambda _: fast.find_demo_model(lambda _: None), range(4)))
        assert ({cache / fast.NAME}, 1) == (paths, len(copied))

    def test_by_another_start_that_is_waited_for(self, cache, copied, demo_engine):
        cache.mkdir(parents=True)
        said, waits = [], threading.Event()
        with ThreadPoolExecutor(1) as pool:
            with FileLock(cache / f"{fast.NAME}.lock"):
                finding = pool.submit(fast.find_demo_model, lambda line: (said.append(line), waits.set()))
                assert waits.wait(30)
                shutil.copyfile(demo_engine.file.path, cache / fast.NAME)
            assert cache / fast.NAME == finding.result(30)
        assert ([f"waiting for another start that writes {cache / fast.NAME}"], []) == (said, copied)

    def test_again_when_it_is_damaged(self, cache, copied):
        cache.mkdir(parents=True)
        with (cache / fast.NAME).open("wb") as file:
            file.truncate(fast.SIZE)
        assert fast.is_fast_demo_model(fast.find_demo_model(lambda _: None))
        assert 1 == len(copied)

    def test_again_when_it_cannot_be_read(self, cache, copied, monkeypatch):
        fast.find_demo_model(lambda _: None)
        reading = Path.open

        def refusing(self, *args, **kwargs):
            if self == cache / fast.NAME and len(copied) < 2:
                raise PermissionError
            return reading(self, *args, **kwargs)

        monkeypatch.setattr(Path, "open", refusing)
        assert cache / fast.NAME == fast.find_demo_model(lambda _: None)
        assert 2 == len(copied)

    def test_in_place_of_what_a_killed_start_has_left(self, cache, copied, tmp_path):
        cache.mkdir(parents=True)
        (tmp_path / "precious").write_text("mine")
        (cache / f"{fast.NAME}.partial").symlink_to(tmp_path / "precious")
        assert fast.is_fast_demo_model(fast.find_demo_model(lambda _: None))
        assert ({fast.NAME}, "mine") == (names(cache), (tmp_path / "precious").read_text())


class TestWhereItCannotBeHad:
    """The model is read as it is shipped, and a warning says why: also to who uses the library, without a log."""

    @pytest.fixture
    def shipped(self, caplog):
        """Find the demo model: it is the shipped one, for this reason."""

        def shipped(reason):
            said = []
            assert demo_model_path() == fast.find_demo_model(said.append)
            (warning,) = caplog.messages
            told = rf"the faster copy of the demo model cannot be made \({reason}\); reading the model as it is .*"
            assert re.fullmatch(told, warning)
            return said

        return shipped

    def test_without_its_writer(self, cache, monkeypatch, shipped):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        hint = r'install openjev\[embedded\], or pip install "gguf>=0\.18,<0\.20"'
        assert [] == shipped(f"the package gguf is not installed; {hint}")
        assert not cache.exists()

    @pytest.mark.parametrize("executable", ["", None])
    def test_without_a_python(self, executable, cache, monkeypatch, shipped):
        monkeypatch.setattr(sys, "executable", executable)
        shipped("it is written by a process of its own, and this one does not know its Python")

    def test_in_a_frozen_application(self, cache, monkeypatch, shipped):
        monkeypatch.setattr(sys, "frozen", True, raising=False)
        shipped("it is written by a process of its own, and this one does not know its Python")

    def test_without_a_place(self, monkeypatch, tmp_path, shipped):
        (tmp_path / "file").touch()
        monkeypatch.setattr(fast, "user_cache_path", lambda *_, **__: tmp_path / "file" / "openjev")
        shipped(r".*Not a directory.*")

    def test_without_room(self, cache, monkeypatch, shipped):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=fast.SIZE - 1))
        assert [] == shipped(rf"{cache} has room for 145 MB, and it takes 145")

    @pytest.mark.parametrize("found", [Path("~/.cache/openjev"), RuntimeError("no home")])
    def test_without_a_home(self, found, monkeypatch, shipped):
        def user_cache_path(*_, **__):
            if isinstance(found, RuntimeError):
                raise found
            return found

        monkeypatch.setattr(fast, "user_cache_path", user_cache_path)
        shipped(r"there is no home directory for a cache \(.*\); set XDG_CACHE_HOME")

    def test_while_another_start_takes_too_long(self, cache, monkeypatch, shipped):
        monkeypatch.setattr(fast, "PATIENCE", 0.01)
        cache.mkdir(parents=True)
        with FileLock(cache / f"{fast.NAME}.lock"):
            said = shipped(r"another process has held .*\.lock for 0\.01 s")
        assert [f"waiting for another start that writes {cache / fast.NAME}"] == said

    def test_where_files_cannot_be_locked(self, cache, monkeypatch, shipped):
        def acquire(self, timeout):
            raise NotImplementedError("no locks here")

        monkeypatch.setattr(FileLock, "acquire", acquire)
        shipped("no locks here")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (
                "target.write_bytes(b'half'); raise AttributeError('old')",
                r"writing .*\.partial: AttributeError: old .*",
            ),
            ("target.write_bytes(b'half'); raise MemoryError", r"writing .*\.partial: MemoryError .*"),
            ("import os; os.kill(os.getpid(), 9)", r"writing .*\.partial: its process ended with -9 .*"),
            ("target.write_bytes(b'GGUF')", r'other bytes came out than should; it is known to work with "gguf>=.*"'),
            ("pass", "other bytes came out than should; .*"),
        ],
    )
    def test_when_writing_fails(self, text, reason, cache, shipped, script):
        script(text)
        assert 1 == len(shipped(reason))
        assert set() == names(cache)

    def test_when_writing_takes_too_long(self, cache, monkeypatch, shipped, script):
        monkeypatch.setattr(fast, "LIMIT", 1.0)
        script("import time; target.write_bytes(b'half'); time.sleep(60)")
        shipped(r"writing .*\.partial took longer than 1 s")
        assert (set(), []) == (names(cache), writers_of(cache))

    def test_when_the_writers_package_is_broken(self, cache, monkeypatch, shipped):
        def find_spec(name):
            raise ValueError(f"{name}.__spec__ is None")

        monkeypatch.setattr(importlib.util, "find_spec", find_spec)
        shipped("gguf.__spec__ is None")

    def test_and_the_shipped_one_is_damaged(self, cache, monkeypatch, tmp_path):
        (tmp_path / "damaged.gguf").write_bytes(b"GGUF")
        monkeypatch.setattr(fast, "demo_model_path", lambda: tmp_path / "damaged.gguf")
        with pytest.raises(
            StartupError, match=f"is damaged or another one: expected sha256 {SHA256}, found [0-9a-f]{{64}}"
        ):
            fast.find_demo_model(lambda _: None)
        assert not cache.exists()


def writers_of(cache):
    """The processes that write a file in this folder."""
    return [process for process in psutil.process_iter() if any(str(cache) in part for part in arguments(process))]


def arguments(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class TestAStartThatIsStopped:
    """While the file is being written."""

    @pytest.fixture
    def start(self, tmp_path):
        """One that is at it, in a group of its own."""
        command = [Path(sys.executable).with_name("openjev"), "ask", ROOT / "examples" / "request.json"]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        asyncio.run(until((tmp_path / "openjev" / f"{fast.NAME}.partial").exists))
        yield process
        process.kill()
        process.communicate()

    def test_by_ctrl_c_ends_at_once_and_claims_nothing(self, start, tmp_path):
        os.killpg(start.pid, signal.SIGINT)
        _, said = start.communicate(timeout=30)
        assert (130, "") == (start.returncode, said.split("\n", 1)[1])
        assert set() == names(tmp_path / "openjev")

    def test_takes_the_writer_with_it_however_it_ends(self, start, tmp_path):
        assert 1 == len(writers_of(tmp_path))
        start.kill()
        asyncio.run(until(lambda: writers_of(tmp_path) == []))
        assert (tmp_path / "openjev" / f"{fast.NAME}.partial").stat().st_size < fast.SIZE


def test_the_writer_that_is_named_is_the_one_that_the_extra_installs():
    wanted = {one.specifier for one in map(Requirement, requires("openjev")) if one.name == "gguf"}
    assert {Requirement(fast.WRITER).specifier} == wanted
