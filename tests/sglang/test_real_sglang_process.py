"""The real SGLang as a child: whatever is killed, nothing is left, and the end is told."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from sglang_fixtures import REAL, launched_real_sglang

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.opening import open_sglang
from openjev_core.errors import BackendError, BackendUnavailable
from openjev_core.launch.guardian import descendants
from openjev_core.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.sglang]


@pytest.fixture
def directory():
    where = os.environ.get(REAL, "http")
    if where.startswith("http"):
        pytest.skip(f"{REAL} names no directory")
    return Path(where)


@pytest.fixture
def own_sglang(directory, frontend):
    """A server of this test's own."""
    with ExitStack() as stack:
        yield stack.enter_context(launched_real_sglang(directory, frontend))


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def left_after(pids, seconds):
    for _ in range(int(seconds * 10)):
        if not any(alive(pid) for pid in pids):
            break
        time.sleep(0.1)
    return [command_line(pid) for pid in pids if alive(pid)]


VICTIMS = {"api": "launching_api", "guardian": "guardian.py", "main": "sglang.launch_server", "worker": "scheduler"}


@pytest.mark.parametrize("victim", VICTIMS)
def test_whatever_is_killed_nothing_is_left(own_sglang, victim):
    launcher = own_sglang.launcher
    pids = {launcher.pid, *descendants(launcher.pid)}
    assert len(pids) >= 4
    named = [pid for pid in pids if VICTIMS[victim] in command_line(pid)]
    # The guardian's command line holds SGLang's.
    (struck,) = [pid for pid in named if (victim == "guardian") == ("guardian.py" in command_line(pid))]
    os.kill(struck, signal.SIGKILL)
    output = launcher.stdout.read()
    code = launcher.wait(30)
    assert left_after(pids, 10) == []
    if victim == "api":
        assert code == -signal.SIGKILL
    else:
        assert code == 5
        assert "ended" in output


async def test_a_stopped_server_is_noticed_and_serves_again_when_it_goes_on(own_sglang):
    pids = [pid for pid in descendants(own_sglang.launcher.pid) if "guardian.py" not in command_line(pid)]
    key = own_sglang.api_key
    async with open_sglang(own_sglang.url, Settings(), vocab_size=own_sglang.vocab_size, api_key=key) as backend:
        await backend.check()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(BackendUnavailable):
                await backend.check()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3), backend.prefix((5, 6, 7), key="state"):
                    pass
            assert backend.slots.free == backend.slots.size
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        await backend.check()
        async with backend.prefix((5, 6, 7), key="state") as warm:
            assert warm.warm_up.prompt_tokens == 3


async def test_a_server_that_starts_again_under_four_clients_that_retry_lives(directory):
    """On 0.5.19 their calls met the Python front end's own first one, which is plain, and killed it."""
    stop = asyncio.Event()

    async def client(backend, number):
        answered = []
        while not stop.is_set():
            try:
                key = f"{number} {len(answered)}"
                async with asyncio.timeout(10), backend.prefix((5, number, len(answered)), key=key) as warm:
                    await warm.read([Branch((8, 9), (49, 50))])
                answered.append(time.monotonic())
            except (BackendError, TimeoutError):
                await asyncio.sleep(0.2)
        return answered

    with ExitStack() as first, ExitStack() as second:
        server = first.enter_context(launched_real_sglang(directory, "python"))
        key = server.api_key
        async with open_sglang(server.url, Settings(), vocab_size=server.vocab_size, api_key=key) as backend:
            clients = [asyncio.create_task(client(backend, number)) for number in range(4)]
            await asyncio.sleep(3)
            await asyncio.to_thread(first.close)
            ended_at = time.monotonic()
            port = ("--port", server.url.rpartition(":")[2])
            again = launched_real_sglang(directory, "python", *port)
            server = await asyncio.to_thread(second.enter_context, again)
            await asyncio.sleep(10)
            stop.set()
            answered = await asyncio.gather(*clients)
            assert all(times[0] < ended_at < times[-1] for times in answered)
            await backend.check()
            assert server.launcher.poll() is None


@pytest.mark.usefixtures("own_sglang")
def test_no_secret_is_in_the_process_list():
    listed = subprocess.run(["ps", "axww", "-o", "args"], check=True, capture_output=True, text=True).stdout
    assert "key-of-the-tests" not in listed
