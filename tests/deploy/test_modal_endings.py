"""The four ways in which a container ends: told to, without its API, without SGLang, without having started.

The container is the SDK's own entrypoint, the API the real one; SGLang is the stand-in.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest
from modal_container import listens, modal_container
from modal_control_plane import control_plane
from tiny_tokenizer import write_tiny_tokenizer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers run Linux")

DOUBLES = Path(__file__).parents[1] / "doubles"
REQUEST = {"model": "jev-latest", "state": "A.", "questions": {"q": {"type": "noul", "instructions": "Is it?"}}}


def unused_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Deployment:
    """modal_app.py and everything that its container needs on this machine.

    Attributes:
        port: The API's.
        plane: The control plane's URL.
        registered: What the control plane was told.
    """

    def __init__(self, folder, root, plane, registered, definition):
        self.folder, self.plane, self.registered, self.definition = folder, plane, registered, definition
        self.port = unused_port()
        self.report = folder / "report.json"
        environment = folder / "environment"
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "openjev").symlink_to(Path(sys.executable).with_name("openjev"))
        source = (root / "modal_app.py").read_text()
        for here, there in (
            ('ENVIRONMENT = "/opt/openjev"', f'ENVIRONMENT = "{environment}"'),
            ("PORT = 8000", f"PORT = {self.port}"),
            ("STOP_SECONDS = EVALUATION_SECONDS + 45", "STOP_SECONDS = 30"),
        ):
            assert 1 == source.count(here), here
            source = source.replace(here, there)
        (folder / "modal_app.py").write_text(source)

    def container(self, **environment):
        return modal_container(
            self.definition,
            self.plane,
            self.folder,
            **{
                "PYTHONPATH": f"{DOUBLES / 'standin'}:{DOUBLES}",
                "STANDIN_REPORT": str(self.report),
                "TMPDIR": str(self.folder),
                "OPENJEV_MODEL": str(write_tiny_tokenizer(self.folder / "tiny")),
                "OPENJEV_SERVED_MODEL_NAME": "Mine-1",
                **environment,
            },
        )

    def sglang(self):
        """Process ids of the stand-in, by what they are."""
        return json.loads(self.report.read_text())["pids"]

    def wait_for_sglang(self):
        end = time.monotonic() + 60
        while not self.report.exists():
            assert time.monotonic() < end
            time.sleep(0.05)

    def everything_ended(self, *pids):
        """Whether none of these processes nor SGLang's is alive, and the port is free, within a few seconds."""
        watched = {*pids, *(self.sglang().values() if self.report.exists() else ())}
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if not any(alive(pid) for pid in watched) and not listens(self.port):
                return True
            time.sleep(0.05)
        return False


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(container):
    return [child.pid for child in psutil.Process(container.process.pid).children(recursive=True)]


def api_of(container):
    """The API: the one child of the container's first process that is ``openjev serve``."""
    children = psutil.Process(container.process.pid).children()
    (api,) = [child.pid for child in children if "serve" in child.cmdline()]
    return api


@pytest.fixture(scope="module")
def definition(tmp_path_factory, root, modal):
    """The server as a deploy registers it. What is in the image's sources does not matter here."""
    folder = tmp_path_factory.mktemp("deployed")
    shutil.copy(root / "modal_app.py", folder)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (folder / name).touch()
    for name in ("openjev_core", "plugins"):
        (folder / name).mkdir()
        (folder / name / "some.py").touch()
    with control_plane() as (plane, registered):
        result = modal(plane, "deploy", "modal_app.py", cwd=folder)
    assert 0 == result.returncode, result.stdout + result.stderr
    return registered.functions["Server"]


@pytest.fixture
def deployment(tmp_path, root, definition):
    with control_plane() as (plane, registered):
        yield Deployment(tmp_path, root, plane, registered, definition)


def test_a_normal_stop_ends_with_0(deployment):
    with deployment.container() as container:
        container.wait_for("listening on")
        reply = httpx.post(f"http://127.0.0.1:{deployment.port}/v1/systemone", json=REQUEST, timeout=30)
        assert "Mine-1" == reply.json()["model"]
        pids = descendants(container)
        assert 0 == container.stop()

    assert deployment.everything_ended(*pids)
    assert ["vo-1"] == deployment.registered.committed
    assert [] == deployment.registered.results
    assert "by itself" not in container.log
    assert "is killed" not in container.log


def test_the_end_of_the_api_is_the_containers(deployment):
    with deployment.container() as container:
        container.wait_for("listening on")
        pids = descendants(container)
        os.kill(api_of(container), signal.SIGKILL)
        assert 128 + signal.SIGKILL == container.ended()

    assert deployment.everything_ended(*pids)
    assert ["vo-1"] == deployment.registered.committed
    assert "openjev: the API ended by itself (-9); this container ends with status 137" in container.log


def test_an_api_that_ends_in_peace_unasked_is_a_failure_too(deployment):
    with deployment.container() as container:
        container.wait_for("listening on")
        pids = descendants(container)
        os.kill(api_of(container), signal.SIGTERM)
        assert 1 == container.ended()

    assert deployment.everything_ended(*pids)
    assert ["vo-1"] == deployment.registered.committed


def test_the_end_of_sglang_is_the_containers(deployment):
    with deployment.container() as container:
        container.wait_for("listening on")
        pids = descendants(container)
        os.kill(deployment.sglang()["main"], signal.SIGKILL)
        assert 1 == container.ended()

    assert deployment.everything_ended(*pids)
    assert ["vo-1"] == deployment.registered.committed
    assert "SGLang was killed by SIGKILL" in container.log


def test_an_sglang_that_does_not_start_is_the_containers_end(deployment):
    with deployment.container(STANDIN_MODE="exit") as container:
        assert 1 == container.ended()

    assert deployment.everything_ended()
    assert ["vo-1"] == deployment.registered.committed
    assert "SGLang did not start: SGLang exited with status 3" in container.log
    assert "cannot load the model" in container.log


def test_a_wrong_setting_is_the_containers_end(deployment):
    with deployment.container(OPENJEV_ORDERS="none") as container:
        assert 0 != container.ended()

    assert deployment.everything_ended()
    assert "OPENJEV_ORDERS: expected an integer from 1 up, or full, found 'none'" in container.log


def test_an_api_that_cannot_be_started_is_told_to_modal(deployment):
    (deployment.folder / "environment" / "bin" / "openjev").unlink()
    with deployment.container() as container:
        container.ended()

    (result,) = deployment.registered.results
    assert "FileNotFoundError" in result.exception
    assert not listens(deployment.port)


def test_a_stop_while_the_model_loads_ends_with_0(deployment):
    with deployment.container(STANDIN_MODE="ready") as container:
        deployment.wait_for_sglang()
        pids = descendants(container)
        assert 0 == container.stop()

    assert deployment.everything_ended(*pids)
    assert "by itself" not in container.log


def test_nothing_outlives_a_container_that_is_killed(deployment):
    with deployment.container() as container:
        container.wait_for("listening on")
        pids = descendants(container)
        try:
            container.process.kill()
            assert -signal.SIGKILL == container.ended()
            assert deployment.everything_ended(*pids)
        finally:
            for pid in filter(alive, pids):
                os.kill(pid, signal.SIGKILL)
