"""Deploying and running modal_app.py against a control plane on this machine."""

from __future__ import annotations

import json
import re

import pytest
from live_server import live_server
from modal_control_plane import control_plane

from openjev_core.launch.profiles import QWEN36


def commands(registered):
    """Every step of the image, first to last."""
    return [command for image in registered.images for command in image.dockerfile_commands]


VARIABLES = {
    "OPENJEV_PROFILE": "qwen36",
    "OPENJEV_FRONTEND": "python",
    "OPENJEV_API_KEY": "secret-of-the-deployer",
}


@pytest.fixture(scope="module")
def registered(modal):
    """What a deploy from an environment with a few variables registers."""
    with control_plane("http://127.0.0.1:1") as (url, registered):
        result = modal(url, "deploy", "modal_app.py", **VARIABLES)
    assert 0 == result.returncode, result.stdout + result.stderr
    return registered


def test_a_deploy_registers_the_server(registered):
    assert [] == registered.refused
    assert registered.published
    assert ["Server"] == list(registered.functions)
    server = registered.functions["Server"]
    assert server.is_server
    assert ("B200", 1) == (server.resources.gpu_config.gpu_type, server.resources.gpu_config.count)
    assert ["us-west", "us-central", "us"] == list(server.scheduler_placement.regions)
    assert (8000, ["us-west"], True) == (
        server.http_config.port,
        list(server.http_config.proxy_regions),
        server.http_config.unauthenticated,
    )
    scaling = server.autoscaler_settings
    assert (300, 0) == (scaling.scaledown_window, scaling.min_containers)
    assert 0 < scaling.target_concurrency_float < 16
    assert not scaling.HasField("max_containers")
    assert ["openjev-huggingface"] == [volume.deployment_name for volume in registered.volumes]
    assert [("/cache", True)] == [(v.mount_path, v.allow_background_commits) for v in server.volume_mounts]


def tracked_sources(root):
    """What the distribution is built from."""
    inside = [path for folder in ("openjev_core", "plugins") for path in (root / folder).rglob("*") if path.is_file()]
    kept = [path for path in inside if "__pycache__" not in path.parts]
    return {str(path.relative_to(root)) for path in kept} | {"pyproject.toml", "README.md", "LICENSE"}


def test_a_deploy_builds_an_environment_beside_sglangs(registered, root):
    steps = commands(registered)
    assert [f"FROM {QWEN36.image}"] == [step for step in steps if step.startswith("FROM ") and step != "FROM base"]
    assert "ENTRYPOINT []" in steps
    uploaded = {name.removeprefix("/opt/openjev-source/") for name in registered.files if "openjev-source" in name}
    assert tracked_sources(root) <= uploaded
    assert not any("__pycache__" in name for name in uploaded)
    runs = [step for step in steps if step.startswith("RUN")]
    assert [
        "RUN python3 -m venv /opt/openjev",
        "RUN /opt/openjev/bin/pip install --no-cache-dir '/opt/openjev-source[otel]'",
        "RUN /opt/openjev/bin/openjev plugins list",
    ] == runs
    copies = [index for index, step in enumerate(steps) if step.startswith("COPY")]
    assert max(copies) < steps.index(runs[0])
    # SGLang's Python stays the first one.
    assert not any(step.startswith("ENV PATH") for step in steps)
    variables = dict(step.removeprefix("ENV ").split("=", 1) for step in steps if step.startswith("ENV "))
    for name in ("HF_HOME", "SGLANG_CACHE_DIR", "TRITON_CACHE_DIR"):
        assert variables[name].startswith("/cache/")


def test_a_deploy_forwards_three_variables_and_no_key(registered):
    assert [{"OPENJEV_PROFILE": "qwen36", "OPENJEV_FRONTEND": "python"}] == [
        dict(secret.env_dict) for secret in registered.secrets
    ]
    assert "secret-of-the-deployer" not in repr(registered)


def test_a_deploy_without_an_account_says_so(modal):
    with control_plane() as (url, registered):
        result = modal(url, "deploy", "modal_app.py", credentials=False)

    assert 1 == result.returncode
    assert re.search("token", result.stdout + result.stderr, re.IGNORECASE)
    assert {} == registered.functions


def test_a_run_proves_the_server_and_stops_it(modal, root, tmp_path):
    with live_server() as server, control_plane(server.url) as (url, registered):
        result = modal(url, "run", root / "modal_app.py", "--no-semantics", cwd=tmp_path)

    assert 0 == result.returncode, result.stdout + result.stderr
    report = json.loads((tmp_path / "smoke-result.json").read_text())
    assert report["passed"]
    assert server.url == report["url"]
    assert re.search(r"ok +as many answers as allowed", result.stdout)
    assert not registered.published
    assert registered.stopped


def test_a_run_whose_checks_fail_fails_and_stops_the_server(modal, root, tmp_path):
    with live_server() as server, control_plane(server.url) as (url, registered):
        result = modal(url, "run", root / "modal_app.py", cwd=tmp_path)  # a toy's answers make no sense

    assert 1 == result.returncode
    report = json.loads((tmp_path / "smoke-result.json").read_text())
    assert not report["passed"]
    assert 0 < report["counts"]["failed"]
    assert "Traceback" not in result.stdout + result.stderr
    assert registered.stopped


def test_a_run_whose_server_never_starts_fails(modal, root, tmp_path, free_port):
    with control_plane(f"http://127.0.0.1:{free_port}") as (url, registered):
        result = modal(url, "run", root / "modal_app.py", "--timeout", "0.5", cwd=tmp_path)

    assert 1 == result.returncode
    assert json.loads((tmp_path / "smoke-result.json").read_text())["startup_seconds"] is None
    assert registered.stopped
