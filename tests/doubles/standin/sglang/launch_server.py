"""``python -m sglang.launch_server`` as a stand-in.

It starts a worker in a session of its own that ignores every signal it can, and the worker starts a child that does
too: what an API has to find when it cleans up. When the worker ends, the server ends, as SGLang does.

``STANDIN_MODE`` makes it ``exit`` with status 3, or never get ``ready``. ``STANDIN_REPORT`` names a file for its
process ids, arguments and environment.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if sys.argv[1] == "worker":
    child = subprocess.Popen([sys.executable, "-c", sys.argv[2], "child", sys.argv[2]], start_new_session=True)
    try:
        print(child.pid, flush=True)
    except BrokenPipeError:  # stopped before it was heard: still here, to be killed
        pass
while True:
    time.sleep(60)
"""


def arguments() -> argparse.Namespace:
    """The flags that matter here, from the command line and from the config file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--port", type=int)
    parser.add_argument("--api-key")
    parser.add_argument("--context-length", type=int)
    parser.add_argument("--model-path")
    parser.add_argument("--served-model-name")
    found, _ = parser.parse_known_args()
    if found.config:
        for name, value in json.loads(Path(found.config).read_text()).items():
            setattr(found, name.replace("-", "_"), value)
    return found


async def serve(flags: argparse.Namespace) -> None:
    """The double."""
    from sglang_double import SGLangDouble  # noqa: PLC0415 - a mode that exits does not need it

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    double = SGLangDouble(
        frontend="rust" if os.environ.get("SGLANG_RUST_SERVER") else "python",
        port=flags.port,
        api_key=flags.api_key,
        context_length=flags.context_length,
        model_path=flags.model_path,
        served_model_name=flags.served_model_name,
        on_death=lambda: os._exit(1),
    )
    async with double.serving():
        print("\x1b[32mThe server is fired up and ready to roll!\x1b[0m", flush=True)
        await stopped.wait()


def main() -> None:
    """Start, report, serve."""
    flags = arguments()
    print(f"server_args=ServerArgs(api_key={flags.api_key!r})", flush=True)
    mode = os.environ.get("STANDIN_MODE")
    if mode == "exit":
        print("cannot load the model", flush=True)
        sys.exit(3)
    worker = subprocess.Popen(
        [sys.executable, "-c", STUBBORN, "worker", STUBBORN], stdout=subprocess.PIPE, start_new_session=True
    )
    assert worker.stdout is not None
    grandchild = int(worker.stdout.readline())
    threading.Thread(target=lambda: (worker.wait(), os._exit(4)), daemon=True).start()
    report = {"pids": {"main": os.getpid(), "worker": worker.pid, "child": grandchild}, "argv": sys.argv}
    partial = Path(os.environ["STANDIN_REPORT"] + ".partial")
    partial.write_text(json.dumps({**report, "environment": dict(os.environ)}))
    partial.rename(os.environ["STANDIN_REPORT"])
    if mode == "ready":
        signal.pause()
    asyncio.run(serve(flags))


main()
