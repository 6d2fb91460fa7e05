"""SGLang as a child process: starting it, waiting until it is ready, passing on its log, stopping it."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from attrs import define, field

from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.errors import BackendError, StartupError
from openjev_core.launch import guardian
from openjev_core.launch.profiles import find_profile
from openjev_core.launch.sglang_flags import SGLangCommand, sglang_command
from openjev_core.launch.sglang_secrets import child_environment, delete, hidden_values, redacted, write_secrets
from openjev_core.settings import Settings

Log = Callable[[str], None]

STOP_SECONDS = 15.0
"""Seconds between an orderly stop and SIGKILL."""
PROGRESS_SECONDS = 15.0
POLL_SECONDS = 0.5
EXIT_POLL_SECONDS = 0.1
REMEMBERED_LINES = 5
CHUNK = 65_536
PORTS = range(21_000, 32_000)
"""Below the ports that kernels choose themselves (from 32,768 on, on Linux)."""
PORT_TRIES = 200
LINE_LIMIT = 2_000
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@define(eq=False)
class SGLangProcess:
    """A running SGLang.

    Attributes:
        url: Where it listens.
        api_key: The key that it asks for, if any.
        marker: A value in the environment of all its processes, by which they are found.
        guardian: The process that guards it.
        log: Takes its lines, without secrets.
        hidden: The values that no line shows.
        last_lines: The latest lines.
        reader: Passes on what SGLang writes.
    """

    url: str
    api_key: str | None = field(repr=False)
    marker: str
    guardian: asyncio.subprocess.Process
    log: Log
    hidden: tuple[str, ...] = field(repr=False)
    last_lines: deque[str] = field(factory=lambda: deque(maxlen=REMEMBERED_LINES))
    reader: asyncio.Task[None] | None = None

    @property
    def last_words(self) -> str:
        """The last lines of its log, as the end of a sentence."""
        return f"; its last lines: {' | '.join(self.last_lines)}" if self.last_lines else ""

    async def wait(self) -> str:
        """Wait until SGLang ends, kill what is left of it, and return how it ended."""
        code = await self.exit_code()
        await asyncio.to_thread(guardian.kill_all, lambda: guardian.marked(self.marker))
        if self.reader is not None:
            await asyncio.wait([self.reader], timeout=1)
        return f"{ending(code)}{self.last_words}"

    async def exit_code(self) -> int:
        """Wait until the guardian ends; returns its exit status.

        asyncio's own `wait` also waits for the pipes, which processes that outlived a killed guardian hold open.
        """
        while (code := self.guardian.returncode) is None:  # noqa: ASYNC110 - asyncio offers no event for it
            await asyncio.sleep(EXIT_POLL_SECONDS)
        return code

    async def stop(self) -> None:
        """Stop SGLang and every process that it started. Returns when all of them are gone."""
        if self.guardian.returncode is None:
            if self.guardian.stdin is not None:
                # Closing the pipe alone would kill SGLang at once: this line gives it time to end by itself.
                self.guardian.stdin.write(guardian.STOP)
                self.guardian.stdin.close()
            try:
                async with asyncio.timeout(STOP_SECONDS + guardian.KILL_SECONDS):
                    await self.exit_code()
            except TimeoutError:
                self.guardian.kill()
        await asyncio.to_thread(guardian.kill_all, lambda: guardian.marked(self.marker))
        if self.reader is not None:
            # Nothing holds the pipe any more, so the reader ends by itself, before the event loop closes.
            await asyncio.wait([self.reader], timeout=1)
            self.reader.cancel()

    async def pass_on_lines(self, output: asyncio.StreamReader) -> None:
        """Pass on what SGLang writes to the log, line by line."""
        rest = b""
        while chunk := await output.read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.pass_on(line)
            if len(rest) > CHUNK:
                self.pass_on(rest)
                rest = b""

    def pass_on(self, raw: bytes) -> None:
        """Log one line, without secrets and cut to :data:`LINE_LIMIT` characters."""
        # Colours are for terminals, and so are the earlier states of a progress bar.
        plain = TERMINAL_CODES.sub("", raw.decode("utf-8", "replace").rstrip().rpartition("\r")[2])
        line = redacted(plain, self.hidden)
        if line:
            self.last_lines.append(line[:300])
            # If the log cannot be written, reading goes on: SGLang would hang on a full pipe.
            with suppress(OSError, ValueError):
                self.log(line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]} ... ({len(line)} characters)")


@asynccontextmanager
async def launched_sglang(
    settings: Settings,
    extra_flags: Sequence[str] = (),
    *,
    tokenizer_dir: str | None = None,
    log: Log = lambda _: None,
    environ: Mapping[str, str] = os.environ,
) -> AsyncIterator[SGLangProcess]:
    """Start SGLang with ``settings.sglang_python``. Inside the block it is ready; the end of the block stops it.

    If this process dies inside the block, even by SIGKILL, all of SGLang dies within seconds.

    Args:
        settings: Which Python, profile, front end, model, limits and key.
        extra_flags: The caller's SGLang flags.
        tokenizer_dir: A local directory with the tokenizer.
        log: Takes progress and SGLang's own lines.
        environ: The environment for SGLang, from which ``OPENJEV_*`` is left out.

    Raises:
        SettingsError: An unknown profile, or a flag that is refused.
        StartupError: SGLang did not start, ended, or was not ready in time.
    """
    profile = find_profile(settings.profile)
    key = settings.backend_api_key
    if key is None and settings.frontend == "python":
        # Other users of this machine reach loopback too.
        key = secrets.token_urlsafe(24)
    command = sglang_command(settings, profile, extra_flags, port=free_port(), api_key=key, tokenizer_dir=tokenizer_dir)
    key = command.secrets.get("--api-key")
    config = write_secrets(command.secrets)
    log(f"starting SGLang: {' '.join(command.argv)}")
    try:
        process = await start(command, key, config, log, child_environment(environ, command.environment))
    except BaseException:
        delete(config)
        raise
    if process.guardian.stdout is not None:
        process.reader = asyncio.create_task(process.pass_on_lines(process.guardian.stdout))
    try:
        await ready(process, settings.startup_timeout)
        delete(config)
        yield process
    finally:
        await process.stop()
        delete(config)


async def start(
    command: SGLangCommand, key: str | None, config: Path | None, log: Log, environment: Mapping[str, str]
) -> SGLangProcess:
    """Start the guardian, and with it SGLang."""
    python, *rest = command.argv
    if shutil.which(python) is None:
        raise StartupError(f"OPENJEV_SGLANG_PYTHON: expected a Python that has SGLang, found no program at {python!r}")
    marker = secrets.token_hex(12)
    more = [] if config is None else ["--config", str(config)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", guardian.__file__, marker, str(STOP_SECONDS), str(config or "-")),
        *(python, *rest, *more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(environment),
        start_new_session=True,
    )
    hidden = hidden_values(command.secrets.values(), environment)
    return SGLangProcess(command.url, key, marker, process, log, hidden)


async def ready(process: SGLangProcess, seconds: float) -> None:
    """Wait until SGLang serves, by its health page. No plain call of its own warm-up is running then.

    Raises:
        StartupError: SGLang ended, or was not ready in time.
    """
    client = SGLangClient(process.url, process.api_key)
    began = reported = time.monotonic()
    ended = asyncio.create_task(process.wait())
    try:
        while True:
            if await healthy(client):
                process.log(f"SGLang is ready after {time.monotonic() - began:.0f} s at {process.url}")
                return
            await asyncio.wait([ended], timeout=POLL_SECONDS)
            now = time.monotonic()
            if ended.done():
                raise StartupError(f"SGLang did not start: {ended.result()}")
            if now - began > seconds:
                raise StartupError(
                    f"SGLang was not ready within {seconds:g} s; OPENJEV_STARTUP_TIMEOUT gives it more"
                    f"{process.last_words}"
                )
            if now - reported > PROGRESS_SECONDS:
                reported = now
                process.log(f"waiting for SGLang: {now - began:.0f} s of at most {seconds:g} s")
    finally:
        ended.cancel()
        await client.aclose()


async def healthy(client: SGLangClient) -> bool:
    """Whether the server's health page answers 200."""
    try:
        return await client.health(seconds=10.0)
    except BackendError:
        return False


def ending(code: int) -> str:
    """How SGLang ended, in words, from the guardian's exit status."""
    if code < 0:
        return f"the process that guards SGLang was killed by {signal_name(-code)}, and SGLang with it"
    if code > guardian.SIGNAL_BASE:
        return f"SGLang was killed by {signal_name(code - guardian.SIGNAL_BASE)}"
    return f"SGLang exited with status {code}"


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def free_port() -> int:
    """A port that is free now, and most likely still free when SGLang binds it after its model has loaded.

    It is none of the ports that the kernel picks itself, because those also serve every outgoing connection.

    Raises:
        StartupError: There is none.
    """
    for _ in range(PORT_TRIES):
        port = secrets.choice(PORTS)
        with socket.socket() as listener, suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return port
    raise StartupError(f"expected a free port from {PORTS[0]} to {PORTS[-1]} for SGLang, found none: pass --port")
