"""SGLang as a child: it becomes ready, its end is noticed, and nothing of it is ever left behind."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from openjev_core.backends.sglang.opening import open_sglang
from openjev_core.errors import SettingsError, StartupError
from openjev_core.launch import sglang_process
from openjev_core.launch.sglang_process import launched_sglang
from openjev_core.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="SGLang runs on Linux")]

DOUBLES = Path(__file__).parents[1] / "doubles"


@pytest.fixture
def standin(tmp_path):
    """An environment in which this Python has the stand-in for SGLang."""
    return {
        **os.environ,
        "PYTHONPATH": f"{DOUBLES / 'standin'}:{DOUBLES}",
        "STANDIN_REPORT": str(tmp_path / "report.json"),
        "TMPDIR": str(tmp_path),
        "OPENJEV_API_KEY": "clients-secret",
        "HF_TOKEN": "hub-secret",
        "OPENJEV_SGLANG_PYTHON": sys.executable,
    }


def report(standin):
    return json.loads(Path(standin["STANDIN_REPORT"]).read_text())


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_text()


def config_files(standin):
    return list(Path(standin["TMPDIR"]).glob("*.yaml"))


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


async def status_without_key(url):
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/model_info")).status_code


async def gone(pids):
    for _ in range(500):
        if not any(alive(pid) for pid in pids):
            return
        await asyncio.sleep(0.02)
    raise AssertionError([pid for pid in pids if alive(pid)])


def settings(frontend="rust", **more):
    return Settings(sglang_python=sys.executable, frontend=frontend, **more)


async def test_ready_served_and_stopped(standin, frontend):
    lines = []
    async with launched_sglang(settings(frontend), log=lines.append, environ=standin) as process:
        pids = report(standin)["pids"].values()
        assert all(alive(pid) for pid in pids)
        async with open_sglang(process.url, settings(frontend), vocab_size=49152, api_key=process.api_key) as backend:
            await backend.check()
            assert backend.facts.frontend == frontend
            assert backend.facts.served_model_name == "Qwen/Qwen3.6-35B-A3B"
    assert [alive(pid) for pid in pids] == [False] * 3
    assert "The server is fired up and ready to roll!" in lines
    assert any(line.startswith("SGLang is ready after") for line in lines)
    await port_is_free(process.url)


async def test_secrets_stay_out_of_the_process_list_the_log_and_the_environment(standin, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", standin["TMPDIR"])
    lines = []
    configured = settings("python", backend_api_key="backend-secret", api_key=("clients-secret",))
    extra = ["--admin-api-key", "admin-secret"]
    async with launched_sglang(configured, extra, log=lines.append, environ=standin) as process:
        commands = [command_line(pid) for pid in [*report(standin)["pids"].values(), process.guardian.pid]]
        left = config_files(standin)
        assert process.api_key == "backend-secret"
        assert await status_without_key(process.url) == 401
    shown = "\n".join([*commands, *lines, repr(process)])
    assert [word for word in ("backend-secret", "admin-secret", "hub-secret", "clients-secret") if word in shown] == []
    assert "server_args=ServerArgs(api_key='[hidden]')" in lines
    assert [name for name in report(standin)["environment"] if name.startswith("OPENJEV_")] == ["OPENJEV_GUARDED"]
    assert left == []


async def test_a_log_that_cannot_be_written_does_not_hold_sglang_up(standin):
    seen = []

    def log(line):
        seen.append(line)
        if line.startswith("server_args"):
            raise BrokenPipeError

    async with launched_sglang(settings(), log=log, environ=standin) as process:
        assert process.reader is not None
        assert not process.reader.done()
    assert "The server is fired up and ready to roll!" in seen


async def test_the_python_front_end_gets_a_key_even_when_none_is_set(standin):
    async with launched_sglang(settings("python"), environ=standin) as process:
        assert len(process.api_key or "") >= 32
        assert await status_without_key(process.url) == 401


async def test_an_end_before_it_is_ready_is_told_with_its_last_words(standin):
    with pytest.raises(StartupError, match="exited with status 3") as caught:
        async with launched_sglang(settings(), environ={**standin, "STANDIN_MODE": "exit"}):
            pass
    assert "cannot load the model" in str(caught.value)


async def test_a_start_that_takes_too_long(standin, monkeypatch):
    monkeypatch.setattr(sglang_process, "PROGRESS_SECONDS", 0.1)
    monkeypatch.setattr(sglang_process, "STOP_SECONDS", 0.2)
    lines = []
    with pytest.raises(StartupError, match="OPENJEV_STARTUP_TIMEOUT"):
        async with launched_sglang(
            settings(startup_timeout=1.5), log=lines.append, environ={**standin, "STANDIN_MODE": "ready"}
        ):
            pass
    assert any(line.startswith("waiting for SGLang") for line in lines)
    assert [alive(pid) for pid in report(standin)["pids"].values()] == [False] * 3


async def test_the_port_is_none_that_an_outgoing_connection_could_take_meanwhile(monkeypatch):
    assert 21_000 <= sglang_process.free_port() < 32_000
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(sglang_process, "PORTS", range(port, port + 1))
        with pytest.raises(StartupError, match="pass --port"):
            sglang_process.free_port()


async def test_no_such_python():
    with pytest.raises(StartupError, match="OPENJEV_SGLANG_PYTHON"):
        async with launched_sglang(Settings(sglang_python="/nowhere/python")):
            pass


async def test_an_unknown_profile():
    with pytest.raises(SettingsError, match="did you mean qwen36"):
        async with launched_sglang(settings(profile="qwen35")):
            pass


@asynccontextmanager
async def api(standin, frontend):
    """The API's stand-in as a process, ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(DOUBLES / "launching_api.py"),
        env={**standin, "OPENJEV_FRONTEND": frontend},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            while not (line := (await process.stdout.readline()).decode()).startswith("ready"):
                assert line
        _, url, guardian = line.split()
        pids = {**report(standin)["pids"], "guardian": int(guardian)}
        yield process, url, pids
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def port_is_free(url):
    """Return once it is. A process counts as gone when its first thread is, a moment before its sockets are closed."""
    port = int(url.rpartition(":")[2])
    for _ in range(500):
        try:
            server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            await asyncio.sleep(0.02)
        else:
            server.close()
            return
    raise AssertionError(f"port {port} is still taken")


@pytest.mark.parametrize("stopped", [False, True])
async def test_when_the_api_is_killed_nothing_is_left(standin, stopped):
    async with api(standin, "rust") as (process, url, pids):
        if stopped:
            os.kill(pids["main"], signal.SIGSTOP)
        process.kill()
        await gone(pids.values())
        await port_is_free(url)


ENDINGS = {
    "main": "SGLang was killed by SIGKILL",
    "worker": "SGLang exited with status 4",
    "guardian": "the process that guards SGLang was killed by SIGKILL",
}


@pytest.mark.parametrize("victim", ENDINGS)
async def test_when_a_part_of_sglang_is_killed_the_api_ends_and_says_why(standin, victim):
    async with api(standin, "rust") as (process, url, pids):
        os.kill(pids[victim], signal.SIGKILL)
        async with asyncio.timeout(15):
            output = (await process.stdout.read()).decode()
            code = await process.wait()
        assert code == 5
        assert f"ended {ENDINGS[victim]}" in output
        await gone(pids.values())
        await port_is_free(url)


async def test_when_api_and_guardian_are_killed_at_once_the_kernel_ends_sglang(standin):
    """SGLang's own workers end with it in the same way; the stand-in's are the stubborn kind."""
    async with api(standin, "rust") as (process, url, pids):
        try:
            process.kill()
            os.kill(pids["guardian"], signal.SIGKILL)
            await gone([pids["main"], pids["guardian"]])
            await port_is_free(url)
        finally:
            for name in ("worker", "child"):
                os.kill(pids[name], signal.SIGKILL)


async def test_a_normal_stop_is_no_failure(standin):
    async with api(standin, "python") as (process, url, pids):
        process.terminate()
        async with asyncio.timeout(15):
            assert await process.wait() == 0
        assert [alive(pid) for pid in pids.values()] == [False] * 4
        await port_is_free(url)


async def test_a_supervisors_signal_to_everyone_is_a_normal_stop(standin):
    """A service manager signals every process of the service at once."""
    async with api(standin, "rust") as (process, url, pids):
        os.kill(pids["guardian"], signal.SIGTERM)
        process.terminate()
        async with asyncio.timeout(15):
            assert await process.wait() == 0
        await gone(pids.values())
        await port_is_free(url)
