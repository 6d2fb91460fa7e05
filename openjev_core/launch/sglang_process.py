"""SGLang as a child: started, waited for, watched, stopped."""

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
from openjev_core.launch.redaction import Redaction
from openjev_core.launch.sglang_flags import SGLangCommand, sglang_command
from openjev_core.launch.sglang_secrets import child_environment, delete, secret_values, write_secrets
from openjev_core.settings import Settings

Log = Callable[[str], None]

STOP_SECONDS = 15.0
"""What an orderly stop leaves SGLang before it is killed."""
PROGRESS_SECONDS = 15.0
POLL_SECONDS = 0.5
EXIT_POLL_SECONDS = 0.1
REMEMBERED_LINES = 5
CHUNK = 65_536
PORTS = range(21_000, 32_000)
"""Below where kernels take their own from (32,768 on Linux)."""
PORT_TRIES = 200
LINE_LIMIT = 2_000
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@define(eq=False)
class SGLangProcess:
    """A running SGLang.

    Attributes:
        url: Where it listens.
        api_key: The key that it asks for, if any.
        marker: What its processes carry in their environment.
        guardian: The process that guards it.
        log: Takes its lines, without secrets.
        last_lines: The latest of them.
    """

    url: str
    api_key: str | None = field(repr=False)
    marker: str
    guardian: asyncio.subprocess.Process
    log: Log
    redaction: Redaction = field(repr=False)
    last_lines: deque[str] = field(factory=lambda: deque(maxlen=REMEMBERED_LINES))
    reader: asyncio.Task[None] | None = None

    @property
    def last_words(self) -> str:
        """The end of its log, as the end of a sentence."""
        return f"; its last lines: {' | '.join(self.last_lines)}" if self.last_lines else ""

    async def wait(self) -> str:
        """Wait for SGLang's end, make sure that all of it is gone, and say how it ended."""
        code = await self.exit_code()
        await asyncio.to_thread(guardian.kill_all, lambda: guardian.marked(self.marker))
        if self.reader is not None:
            await asyncio.wait([self.reader], timeout=1)
        return f"{ending(code)}{self.last_words}"

    async def exit_code(self) -> int:
        """Wait for the guardian's end.

        asyncio's own `wait` also waits for the pipes, which processes that outlived a killed guardian hold open.
        """
        while (code := self.guardian.returncode) is None:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(EXIT_POLL_SECONDS)
        return code

    async def stop(self) -> None:
        """Stop SGLang and everything that it started; returns when all of it is gone."""
        if self.guardian.returncode is None:
            if self.guardian.stdin is not None:
                # Closing the pipe alone would kill SGLang at once: this gives it time to end its own way.
                self.guardian.stdin.write(guardian.STOP)
                self.guardian.stdin.close()
            try:
                async with asyncio.timeout(STOP_SECONDS + guardian.KILL_SECONDS):
                    await self.exit_code()
            except TimeoutError:
                self.guardian.kill()
        await asyncio.to_thread(guardian.kill_all, lambda: guardian.marked(self.marker))
        if self.reader is not None:
            # Everything that held the pipe is gone: it ends by itself, and closes before the event loop does.
            await asyncio.wait([self.reader], timeout=1)
            self.reader.cancel()

    async def pass_on_lines(self, output: asyncio.StreamReader) -> None:
        """Give what SGLang writes to the log, line by line."""
        rest = b""
        while chunk := await output.read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.pass_on(line)
            if len(rest) > CHUNK:
                self.pass_on(rest)
                rest = b""

    def pass_on(self, raw: bytes) -> None:
        """One line, without secrets and of bearable length."""
        # Colours, and what a progress bar has overwritten, are for terminals.
        plain = TERMINAL_CODES.sub("", raw.decode("utf-8", "replace").rstrip().rpartition("\r")[2])
        line = self.redaction.clean(plain)
        if line:
            self.last_lines.append(line[:300])
            # A log that cannot be written must not stop the reading: SGLang would hang on a full pipe.
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
    """Start SGLang with ``settings.sglang_python``; inside the block it is ready, after it nothing of it is left.

    Should this process die inside the block, however suddenly, all of SGLang dies within seconds.

    Args:
        settings: Which Python, profile, front end, model, limits and key.
        extra_flags: The caller's SGLang flags.
        tokenizer_dir: A local directory with the tokenizer.
        log: Takes progress and SGLang's own lines.
        environ: What SGLang's environment is made from; ``OPENJEV_*`` is left out of it.

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
    hidden = Redaction.of([*command.secrets.values(), *secret_values(environment)])
    return SGLangProcess(command.url, key, marker, process, log, hidden)


async def ready(process: SGLangProcess, seconds: float) -> None:
    """Wait until SGLang serves.

    Its health page says so, and no plain call is on its way then that a labelled one could meet.
    """
    client = SGLangClient(process.url, process.api_key)
    began = told = time.monotonic()
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
            if now - told > PROGRESS_SECONDS:
                told = now
                process.log(f"waiting for SGLang: {now - began:.0f} s of at most {seconds:g} s")
    finally:
        ended.cancel()
        await client.aclose()


async def healthy(client: SGLangClient) -> bool:
    """Whether the server says that it is well."""
    try:
        return await client.health(seconds=10.0)
    except BackendError:
        return False


def ending(code: int) -> str:
    """How SGLang ended, from the guardian's exit status."""
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
    """A port that is free now, and likely still is when SGLang binds it after its model has loaded.

    Not one that the kernel would pick: out of those it also serves every outgoing connection.

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
