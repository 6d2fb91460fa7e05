"""openjev on Modal: one container per B200, SGLang in its own image and openjev in an environment beside it.

``modal deploy modal_app.py`` publishes the server. ``modal run modal_app.py`` starts a temporary one, runs the smoke
checks against its URL, writes ``smoke-result.json`` and stops it.

Modal imports this file here and again in the container, there with SGLang's Python, which has none of openjev's
dependencies: nothing but modal and the standard library is imported at the top.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import modal

MIN_CONTAINERS = 0
"""Containers that are kept while nobody asks: 0 costs nothing and makes the first request wait for a start."""

GPU = "B200"
MEMORY_MIB = 65_536
IDLE_SECONDS = 300
"""An idle container is stopped after this."""

TARGET_CONCURRENCY = 12
"""Requests in progress per container from which on Modal starts another, below the 16 that one admits. Without a
target there would never be a second container; no cap is set."""

STARTUP_SECONDS = 1800
"""What SGLang has to become ready, a first download of the weights included."""

EVALUATION_SECONDS = 120
"""What a stop leaves evaluations that run: as long as one may take."""

SECRETS: tuple[modal.Secret, ...] = ()
"""For keys, such as ``modal.Secret.from_name("openjev")`` with ``OPENJEV_API_KEY`` and ``HF_TOKEN`` in it."""

PLUGINS: tuple[str, ...] = ()
"""Requirements of further question types, such as ``"openjev-rank>=1,<2"``."""

FORWARDED = ("OPENJEV_PROFILE", "OPENJEV_FRONTEND", "OPENJEV_SERVED_MODEL_NAME")
"""Variables that are taken from the environment of whoever deploys."""

PORT = 8000
CACHE = "/cache"
SOURCE = "/opt/openjev-source"
ENVIRONMENT = "/opt/openjev"
STOP_SECONDS = EVALUATION_SECONDS + 45
"""What the API has to end in: evaluations first, then SGLang."""

HOOK_SECONDS = 60
"""How long a container whose API has died may take over its exit hooks and the last commit of the volume."""

HERE = Path(__file__).parent

volume = modal.Volume.from_name("openjev-huggingface", create_if_missing=True)

image = (
    modal.Image.from_registry("lmsysorg/sglang:v0.5.19-cu130")
    .entrypoint([])
    .add_local_file(HERE / "pyproject.toml", f"{SOURCE}/pyproject.toml", copy=True)
    .add_local_file(HERE / "README.md", f"{SOURCE}/README.md", copy=True)
    .add_local_file(HERE / "LICENSE", f"{SOURCE}/LICENSE", copy=True)
    .add_local_dir(HERE / "openjev_core", f"{SOURCE}/openjev_core", copy=True, ignore=["**/__pycache__"])
    .add_local_dir(HERE / "plugins", f"{SOURCE}/plugins", copy=True, ignore=["**/__pycache__"])
    .run_commands(
        # An environment of its own that no PATH names: SGLang's Python stays as it is and first. Installed as a
        # distribution: from a source tree on sys.path no plugin would register.
        f"python3 -m venv {ENVIRONMENT}",
        " ".join([f"{ENVIRONMENT}/bin/pip install --no-cache-dir", f"'{SOURCE}[otel]'", *(f"'{p}'" for p in PLUGINS)]),
        f"{ENVIRONMENT}/bin/openjev plugins list",
    )
    .env(
        {
            "HF_HOME": f"{CACHE}/huggingface",
            "SGLANG_CACHE_DIR": f"{CACHE}/sglang",
            "TRITON_CACHE_DIR": f"{CACHE}/triton",
            "OPENJEV_STARTUP_TIMEOUT": str(STARTUP_SECONDS),
            "OPENJEV_REQUEST_TIMEOUT": str(EVALUATION_SECONDS),
            "OPENJEV_GRACE_PERIOD": str(EVALUATION_SECONDS),
        }
    )
)

app = modal.App("openjev")


class Launcher:
    """Runs the API and ends with it.

    The API in turn ends when SGLang does, so whichever dies, the container does too, with a status that is not 0, and
    Modal replaces it. To Modal a container is well for as long as its port listens.

    Args:
        command: The API's.
        environment: Its variables.
        stop_seconds: What it has to end in when it is told to.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], stop_seconds: float) -> None:
        self._command = command
        self._environment = environment
        self._stop_seconds = stop_seconds
        self._lock = threading.Lock()
        self._stopping = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the API and watch it. Returns at once: Modal waits for the port.

        An enter hook that waited would leave Modal without its handler of SIGTERM for as long as the model loads.

        Raises:
            OSError: It cannot be started.
        """
        self._process = subprocess.Popen(  # noqa: S603 - openjev's own command
            self._command,
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=end_with(os.getpid()),  # noqa: PLW1509 - it calls the kernel and nothing that takes a lock
        )
        threading.Thread(target=self._watch, args=(self._process,), name="openjev watchdog", daemon=True).start()

    def stop(self) -> None:
        """Let the API end its evaluations and SGLang, and wait for that. Its end is no failure any more."""
        with self._lock:
            self._stopping = True
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(self._stop_seconds)
        except subprocess.TimeoutExpired:
            print(f"openjev: the API did not end within {self._stop_seconds:g} s and is killed", flush=True)  # noqa: T201
            process.kill()
            process.wait()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        with self._lock:
            if self._stopping:
                return
        status = code if code > 0 else 128 - code if code < 0 else 1
        print(f"openjev: the API ended by itself ({code}); this container ends with status {status}", flush=True)  # noqa: T201
        # Modal runs the exit hooks and commits the volume on SIGTERM, but then ends with 0, which counts as well.
        # Callbacks of atexit come after both.
        atexit.register(end_process, status)
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(HOOK_SECONDS)
        end_process(status)


def end_process(status: int) -> None:
    """End this process with that status, now."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def end_with(parent: int) -> Callable[[], None]:
    """What makes a child get SIGTERM when ``parent`` is gone, however it went; to be called in the child."""
    libc = ctypes.CDLL(None)
    death_signal = 1  # PR_SET_PDEATHSIG

    def bind() -> None:
        libc.prctl(death_signal, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def api_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The API's variables: this container's, less what leads Python to Modal's own packages."""
    paths = environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [path for path in paths if path and not path.startswith(("/pkg", "/root", "/__modal"))]
    return {
        **{name: value for name, value in environ.items() if name != "PYTHONPATH"},
        **({"PYTHONPATH": os.pathsep.join(kept)} if kept else {}),
        "OPENJEV_HOST": "0.0.0.0",  # noqa: S104 - Modal's proxy connects from outside the container
        "OPENJEV_PORT": str(PORT),
        "OPENJEV_SGLANG_PYTHON": sys.executable,
    }


@app.server(
    image=image,
    gpu=GPU,
    memory=MEMORY_MIB,
    env={name: os.environ.get(name) for name in FORWARDED},
    secrets=SECRETS,
    volumes={CACHE: volume},
    port=PORT,
    unauthenticated=True,
    routing_region="us-west",
    compute_region=["us-west", "us-central", "us"],
    target_concurrency=TARGET_CONCURRENCY,
    min_containers=MIN_CONTAINERS,
    scaledown_window=IDLE_SECONDS,
    startup_timeout=STARTUP_SECONDS + 300,  # so that SGLang's own words on why it is late come first
    exit_grace_period=STOP_SECONDS + 15,
)
class Server:
    """The API, with SGLang behind it on loopback."""

    @modal.enter()
    def start(self) -> None:
        """Start both."""
        self.launcher = Launcher(
            (f"{ENVIRONMENT}/bin/openjev", "serve"), api_environment(os.environ), stop_seconds=STOP_SECONDS
        )
        self.launcher.start()

    @modal.exit()
    def stop(self) -> None:
        """Stop both."""
        self.launcher.stop()


@app.local_entrypoint()
def smoke(key: str = "", timeout: float = STARTUP_SECONDS + 300, semantics: bool = True) -> None:
    """Run the smoke checks against a temporary server.

    Args:
        key: Bearer key, where the server has one; OPENJEV_API_KEY is taken when it is not given.
        timeout: Seconds that the server has to become ready.
        semantics: Whether the answers must make sense.
    """
    from openjev_core.cli.smoke import run_smoke  # noqa: PLC0415
    from openjev_core.cli.terminal import complain_about  # noqa: PLC0415 - not in the container
    from openjev_core.errors import OpenJevError  # noqa: PLC0415

    url = Server.get_url()  # type: ignore[attr-defined]  # the decorator makes a modal.Server of the class
    if url is None:
        raise SystemExit("openjev: Modal gives no URL for the server")
    try:
        report = run_smoke(
            url,
            key=key or None,
            json_file=Path("smoke-result.json"),
            startup_timeout=timeout,
            semantics=semantics,
        )
    except OpenJevError as error:
        complain_about(error)
        raise SystemExit(1) from None
    if not report.passed:
        raise SystemExit(1)
