"""What modal_app.py declares, as far as the SDK shows it to someone without an account."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from openjev_core.launch.profiles import QWEN36
from openjev_core.settings import Settings


@pytest.fixture
def modal_app(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root))
    for name in list(os.environ):
        if name.startswith("MODAL_"):
            monkeypatch.delenv(name)
    import modal_app  # noqa: PLC0415 - importable once the project's folder is on the path

    return modal_app


def test_the_server_is_what_the_profile_needs(modal_app):
    info = modal_app.Server.info()

    assert [(QWEN36.gpu, 1)] == info.gpus
    assert QWEN36.memory == info.memory_mib


def test_the_server_is_reached_and_placed_where_it_should_be(modal_app):
    info = modal_app.Server.info()

    assert 8000 == info.port
    assert info.unauthenticated
    assert "us-west" == info.routing_region
    assert ["us-west", "us-central", "us"] == info.compute_regions


def test_weights_and_caches_persist(modal_app):
    info = modal_app.Server.info()

    assert {"/cache": "openjev-huggingface"} == {path: volume.name for path, volume in info.volumes.items()}


def test_the_times_leave_each_other_room(modal_app):
    info = modal_app.Server.info()

    # SGLang's own time is up before Modal's, so that its last lines are seen.
    assert modal_app.STARTUP_SECONDS < info.startup_timeout
    # A weight download of many minutes fits in.
    assert info.startup_timeout >= 1800
    # An evaluation ends before the API is killed, and the API before the container.
    assert Settings().request_timeout <= modal_app.EVALUATION_SECONDS < modal_app.STOP_SECONDS < info.exit_grace_period


def test_another_container_starts_before_one_refuses(modal_app):
    assert modal_app.TARGET_CONCURRENCY < Settings().max_concurrent_requests


def test_it_imports_with_nothing_but_modal(root, tmp_path):
    """As in the container: the file alone, no package of this project, no credentials."""
    shutil.copy(root / "modal_app.py", tmp_path)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MODAL_", "OPENJEV_"))}
    code = """
import sys
sys.path.insert(0, "")
allowed = set(sys.modules)
import modal
before = set(sys.modules)
for name in ("openjev_core", "attrs", "httpx", "starlette", "hypercorn", "msgspec", "orjson"):
    sys.modules.setdefault(name, None) if name not in before else None
import modal_app
print(sorted(name for name in sys.modules if name.startswith("openjev_core") and sys.modules[name]))
print(modal_app.__file__)
"""
    result = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        env={**kept, "MODAL_CONFIG_PATH": str(tmp_path / "none.toml")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == result.returncode, result.stderr
    assert ["[]", str(tmp_path / "modal_app.py")] == result.stdout.split()


def test_the_api_gets_the_containers_variables_and_its_address(modal_app):
    found = modal_app.api_environment({"HF_HOME": "/cache/huggingface", "OPENJEV_PORT": "1", "OPENJEV_HOST": "::1"})

    assert {
        "HF_HOME": "/cache/huggingface",
        "OPENJEV_HOST": "0.0.0.0",
        "OPENJEV_PORT": "8000",
        "OPENJEV_SGLANG_PYTHON": sys.executable,
    } == found


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        (None, None),
        ("/pkg", None),
        ("/root:/pkg/:/__modal/deps", None),
        ("/sgl-workspace/sglang/python:/pkg:/root", "/sgl-workspace/sglang/python"),
    ],
)
def test_modals_own_packages_stay_out_of_both_pythons(modal_app, path, kept):
    found = modal_app.api_environment({} if path is None else {"PYTHONPATH": path})

    assert kept == found.get("PYTHONPATH")
