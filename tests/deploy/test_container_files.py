"""The container examples: they pass a linter, and say what the profile and modal_app.py say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from openjev_core.launch.profiles import QWEN36
from openjev_core.launch.sglang_flags import parse_flags, sglang_command
from openjev_core.settings import Settings, variable

FOLDER = Path(__file__).parents[2] / "examples" / "containers"
CONTAINERFILE = FOLDER / "Containerfile"


def compose(name):
    return yaml.safe_load((FOLDER / name).read_text())


def stages():
    """Target name to its instructions."""
    found = {}
    for line in CONTAINERFILE.read_text().replace("\\\n", "").splitlines():
        if match := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            found[match[2]] = current = [line]
        elif line and not line.startswith("#"):
            current.append(re.sub(r"\s+", " ", line))
    return found


def test_the_containerfile_passes_its_linter():
    hadolint = Path(sys.executable).with_name("hadolint")
    result = subprocess.run([hadolint, CONTAINERFILE], capture_output=True, text=True, check=False)

    assert 0 == result.returncode, result.stdout


@pytest.mark.parametrize("stage", ["server", "api"])
def test_images_are_built_as_on_modal(root, stage):
    (run,) = [step for step in stages()[stage] if step.startswith("RUN")]
    source = (root / "modal_app.py").read_text()
    for command in re.sub("useradd.*", "", run.removeprefix("RUN ")).strip(" &").split(" && "):
        written = command.replace("/opt/openjev-source", "{SOURCE}").replace("/opt/openjev", "{ENVIRONMENT}")
        for words in written.split(" '"):
            assert words.strip("'") in source, words


def test_the_server_has_the_profiles_sglang():
    assert f"FROM {QWEN36.image} AS server" == stages()["server"][0]
    for service in ("worker-0", "worker-1"):
        assert QWEN36.image == compose("compose.router.yaml")["services"][service]["image"]


@pytest.mark.parametrize("service", ["worker-0", "worker-1"])
def test_workers_have_the_profiles_flags(service):
    settings = Settings(sglang_python="python3", frontend="python")
    command = sglang_command(settings, QWEN36, (), port=30000, api_key=None, tokenizer_dir=None)
    found = compose("compose.router.yaml")["services"][service]["command"]

    assert ["python3", "-m", "sglang.launch_server"] == found[:3]
    assert parse_flags(command.argv[3:]) | {"--host": ("0.0.0.0",)} == parse_flags(found[3:])


def test_workers_and_router_are_reached_by_the_api_alone():
    services = compose("compose.router.yaml")["services"]

    assert ["api"] == [name for name, service in services.items() if "ports" in service]
    for name in ("router", "worker-0", "worker-1"):
        assert ["workers"] == services[name]["networks"]
    assert {"http://worker-0:30000", "http://worker-1:30000"} <= set(services["router"]["command"])


@pytest.mark.parametrize("name", ["compose.yaml", "compose.router.yaml"])
def test_compose_files_name_settings_targets_and_volumes_that_exist(name):
    document = compose(name)
    known = {variable(field) for field in Settings.__annotations__}
    for service in document["services"].values():
        assert {key for key in service.get("environment", {}) if key.startswith("OPENJEV_")} <= known
        if "build" in service:
            assert service["build"]["target"] in stages()
            assert CONTAINERFILE == (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).resolve()
        for mount in service.get("volumes", ()):
            assert mount.split(":")[0] in document["volumes"]


def test_ports_are_published_to_this_machine_alone():
    for name in ("compose.yaml", "compose.router.yaml"):
        for service in compose(name)["services"].values():
            for port in service.get("ports", ()):
                assert port.startswith("127.0.0.1:")


def test_a_stop_outlasts_an_evaluation():
    grace = re.search(r"OPENJEV_GRACE_PERIOD=(\d+)", CONTAINERFILE.read_text())[1]
    assert Settings().request_timeout <= float(grace)
    for name, service in (("compose.yaml", "openjev"), ("compose.router.yaml", "api")):
        stop = compose(name)["services"][service]["stop_grace_period"]
        assert float(grace) < float(stop.removesuffix("s"))


def test_only_what_is_built_from_is_sent_to_the_builder():
    lines = (FOLDER / "Containerfile.dockerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        word
        for line in CONTAINERFILE.read_text().splitlines()
        if line.startswith("COPY ")
        for word in line.split()[1:-1]
    }
    assert copied == sent
    assert "*" in lines
