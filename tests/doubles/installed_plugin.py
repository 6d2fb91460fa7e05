"""Real installations of plugin packages, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OPENJEV = str(Path(sys.executable).with_name("openjev"))
UV = os.environ.get("UV", "uv")


def run(*command, cwd=None, site=None, expect=0):
    """Run a command, with the packages in ``site`` installed; returns its output."""
    # A package's own tests are a run of their own, not part of this one.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ = {**inherited, "COLUMNS": "200", "NO_COLOR": "1"}
    if site is not None:
        environ["PYTHONPATH"] = str(site)
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert expect == done.returncode, done.stdout + done.stderr
    return done.stdout


def install(package, site):
    """Build a package and install it into a folder, without its dependencies, which the tests' environment has."""
    options = ("--offline", "--no-deps", "--no-build-isolation", "--quiet", "--python", sys.executable)
    run(UV, "pip", "install", *options, "--target", site, package)
