"""A process that stands for the API: it launches SGLang, says where it is, and ends when SGLang ends or it is told to.

Usage: ``launching_api.py [SGLANG FLAGS]``, with the settings in the environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from openjev_core.launch.profiles import find_profile
from openjev_core.launch.sglang_process import launched_sglang
from openjev_core.settings import load_settings


async def main() -> int:
    """Exit status 0 after SIGTERM, 5 when SGLang ended by itself."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    profile = find_profile(load_settings(os.environ).settings.profile)
    settings = load_settings(os.environ, preset=profile.preset).settings
    async with launched_sglang(settings, sys.argv[1:], log=lambda line: print("log", line, flush=True)) as process:
        print("ready", process.url, process.guardian.pid, flush=True)
        ended = asyncio.create_task(process.wait())
        stop = asyncio.create_task(stopped.wait())
        await asyncio.wait([ended, stop], return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            print("ended", ended.result(), flush=True)
            return 5
        ended.cancel()
        return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
