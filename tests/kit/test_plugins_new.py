"""``openjev plugins new``, from the empty folder to the answer, with real processes and a real installation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from installed_plugin import OPENJEV, UV, install, run

DOUBLES = Path(__file__).parents[1] / "doubles"
EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new") / "coin-flip"
    run(OPENJEV, "plugins", "new", folder)
    return folder


@pytest.fixture(scope="module")
def site(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    install(package, folder)
    return folder


def test_it_says_what_comes_next(tmp_path):
    """As this environment installs: uv's have no pip."""
    pip = "pip" if find_spec("pip") else "uv pip"
    folder = tmp_path / "my plugins" / "coin-toss"

    output = run(OPENJEV, "plugins", "new", folder)

    assert (
        f"\n\nnext:\n  {pip} install -e '{folder}'\n  openjev plugins check coin-toss\n"
        "  openjev plugins show coin-toss\n  openjev plugins guide\n"
    ) == output[output.index("\n\n") :]


def test_it_writes_a_whole_package(package):
    assert [
        "README.md",
        "openjev_coin_flip/__init__.py",
        "openjev_coin_flip/py.typed",
        "pyproject.toml",
        "tests/__snapshots__/test_openjev_coin_flip/test_its_prompt.txt",
        "tests/test_openjev_coin_flip.py",
    ] == sorted(str(path.relative_to(package)) for path in package.rglob("*") if path.is_file())


def test_it_is_listed(site):
    rows = json.loads(run(OPENJEV, "plugins", "list", "--json", site=site))

    assert ("openjev-coin-flip", "0.1.0", "loaded") == next(
        (row["distribution"], row["version"], row["status"]) for row in rows if row["name"] == "coin-flip"
    )


def test_it_passes_the_checks(site):
    assert "ok      coin-flip (openjev-coin-flip)\n" == run(OPENJEV, "plugins", "check", "coin-flip", site=site)


def test_it_is_shown(site):
    shown = run(OPENJEV, "plugins", "show", "coin-flip", site=site)

    assert shown.startswith("coin-flip: Whether the state agrees with a claim.\nfrom openjev-coin-flip, contract")
    assert "A: the material agrees with the claim\n" in shown


def test_it_is_described(site):
    document = json.loads(run(OPENJEV, "schema", site=site))

    question = document["components"]["schemas"]["coin-flip.question"]
    assert ["type", "claim"] == question["required"]
    assert "#/components/schemas/coin-flip.question" in json.dumps(document["components"]["schemas"]["Question"])


def test_its_own_tests_pass(package, site):
    output = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=package, site=site)

    assert "4 passed" in output
    assert "1 snapshot passed" in output


def test_it_answers(site):
    """On the embedded model, by the command line."""
    request = {
        "model": "jev-latest",
        "state": "The sky is blue.",
        "questions": {"sky": {"type": "coin-flip", "claim": "The sky is green."}},
    }
    path = site / "request.json"
    path.write_text(json.dumps(request))

    body = json.loads(run(OPENJEV, "ask", "--json", path, site=site))

    answer = body["answers"]["sky"]
    assert ["type", "agrees", "disagrees", "silent", "confidence"] == list(answer)
    assert pytest.approx(1.0) == answer["agrees"] + answer["disagrees"] + answer["silent"]


@pytest.fixture(scope="module")
def server(site):
    """The API with the new type installed, in a process of its own, on a model without weights."""
    command = [sys.executable, str(DOUBLES / "serve_toy.py"), "0", "port=0"]
    environ = {**os.environ, "PYTHONPATH": str(site)}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
    try:
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait(20)


def test_the_api_answers_and_describes_it(server):
    question = {"type": "coin-flip", "claim": "The sky is green."}
    request = {"model": "jev-latest", "state": "The sky is blue.", "questions": {"sky": question}}

    response = httpx.post(f"{server}/v1/systemone", json=request)
    document = httpx.get(f"{server}/openapi.json").json()

    assert 200 == response.status_code
    assert "coin-flip" == response.json()["answers"]["sky"]["type"]
    assert ["type", "claim"] == document["components"]["schemas"]["coin-flip.question"]["required"]


def test_smoke_tries_its_example(server, site):
    output = run(OPENJEV, "smoke", server, "--no-semantics", site=site)

    (line,) = [line for line in output.splitlines() if "coin-flip" in line]
    assert "ok" in line.lower() or "✓" in line


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Coin", "'Coin' is no name"),
        ("9lives", "'9lives' is no name"),
        (".", "is no name"),
        ("foo-", "'foo-' is no name for a question type and its package: a lower-case letter"),
        ("openjev-foo_", "'foo_' is no name"),
        ("core", "a module openjev_core is installed already; choose another name"),
        ("openjev-core", "a module openjev_core is installed already"),
        ("openjev-noul", "a question type 'noul' is installed already"),
        ("taken", "exists already"),
    ],
)
def test_it_refuses_names(tmp_path, name, complaint):
    (tmp_path / "taken").mkdir()

    done = subprocess.run([OPENJEV, "plugins", "new", name], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert complaint in done.stderr
    assert ["taken"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("openjev-*")))
@pytest.mark.integration
def test_an_example_in_a_fresh_environment(name, tmp_path):
    """Installed with its dependencies beside openjev, its own tests pass and it is checked and listed."""
    root = EXAMPLES.parents[1]
    python = tmp_path / "venv" / "bin" / "python"
    run(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    run(UV, "pip", "install", "--quiet", "--python", python, "-e", f"{root}[testing]", "-e", EXAMPLES / name)

    assert "passed" in run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=EXAMPLES / name)
    slug = name.removeprefix("openjev-")
    assert f"ok      {slug} ({name})\n" == run(python.with_name("openjev"), "plugins", "check", slug)


@pytest.mark.parametrize("name", ["none", "option", "agrees", "answer", "x"])
def test_any_type_name_gives_code_that_runs(tmp_path, name):
    """Names of keywords, and of what the code itself uses."""
    run(OPENJEV, "plugins", "new", name, cwd=tmp_path)

    assert list(tmp_path.glob(f"{name}/tests/__snapshots__/*/test_its_prompt.txt"))


def test_an_unwritable_place_is_a_complaint(tmp_path):
    (tmp_path / "file").write_text("")

    done = subprocess.run(
        [OPENJEV, "plugins", "new", "file/coin"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert 2 == done.returncode
    assert "openjev: file/coin cannot be written: Not a directory\n" == done.stderr
