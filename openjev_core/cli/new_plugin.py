"""``openjev plugins new``: a complete package for a question type."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from openjev_core.cli.terminal import BAD_INPUT, complain
from openjev_core.question import CONTRACT_VERSION, NAME_PATTERN

PREFIX = "openjev-"


def new_plugin(
    name: Annotated[
        str, typer.Argument(help="A folder to write; its last part names the type: coin, ../openjev-coin.")
    ],
) -> None:
    """Write a package for a question type: entry point, type, tests, prompt snapshot, README."""
    folder = Path(name)
    slug = folder.name.removeprefix(PREFIX)
    if not NAME_PATTERN.fullmatch(slug) or slug[-1] in "-_":
        complain(
            f"{slug!r} is no name for a question type and its package: a lower-case letter, then letters, digits, "
            "- or _, a letter or digit last, 64 characters at most"
        )
        raise typer.Exit(BAD_INPUT)
    if folder.exists():
        complain(f"{folder} exists already; choose another name or remove it")
        raise typer.Exit(BAD_INPUT)
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    if slug in (types := load_registry().types):
        complain(f"a question type {slug!r} is installed already; choose a name other than {', '.join(types)}")
        raise typer.Exit(BAD_INPUT)
    if importlib.util.find_spec(module_of(slug)) is not None:
        complain(f"a module {module_of(slug)} is installed already; choose another name")
        raise typer.Exit(BAD_INPUT)
    try:
        written = write_package(folder, slug)
    except OSError as error:
        complain(f"{error.filename or folder} cannot be written: {error.strerror}")
        raise typer.Exit(BAD_INPUT) from None
    for path in written:
        typer.echo(f"wrote {path}")
    # An environment that uv made has no pip.
    pip = "pip" if importlib.util.find_spec("pip") else "uv pip"
    steps = [
        f"{pip} install -e {shlex.quote(str(folder))}",
        *(f"openjev plugins {do} {slug}" for do in ("check", "show")),
    ]
    typer.echo("\n  ".join(["\nnext:", *steps, "openjev plugins guide"]))


def module_of(slug: str) -> str:
    """The name of the package's module."""
    return "openjev_" + slug.replace("-", "_")


def write_package(folder: Path, slug: str) -> list[Path]:
    """Write every file of the package; returns them in the order written."""
    import jinja2  # noqa: PLC0415 - for this command alone

    title = "".join(part.capitalize() for part in re.split("[-_]", slug))
    module = module_of(slug)
    constant = slug.replace("-", "_").upper() + "_TYPE"
    names: dict[str, object] = {
        "name": slug,
        "distribution": PREFIX + slug,
        "module": module,
        "title": title,
        "constant": constant,
        "api": CONTRACT_VERSION,
    }
    targets = {
        "pyproject.toml.jinja": folder / "pyproject.toml",
        "README.md.jinja": folder / "README.md",
        "module.py.jinja": folder / module / "__init__.py",
        "test.py.jinja": folder / "tests" / f"test_{module}.py",
    }
    environment = jinja2.Environment(keep_trailing_newline=True, undefined=jinja2.StrictUndefined)  # noqa: S701 - no HTML
    from importlib.resources import files  # noqa: PLC0415 - slow to import

    sources = files(__package__) / "scaffold"
    for template, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        source = (sources / template).read_text("utf-8")
        target.write_text(environment.from_string(source).render(names), "utf-8")
    typed = folder / module / "py.typed"
    typed.touch()
    snapshot = folder / "tests" / "__snapshots__" / f"test_{module}" / "test_its_prompt.txt"
    snapshot.parent.mkdir(parents=True)
    snapshot.write_bytes(first_prompt(targets["module.py.jinja"], constant).encode())
    return [*targets.values(), typed, snapshot]


def first_prompt(module: Path, constant: str) -> str:
    """The prompt of the type's first example, from the file just written."""
    from openjev_core.testing.scripted import rendered_prompts  # noqa: PLC0415 - for this command alone

    spec = importlib.util.spec_from_file_location(module.parent.name, module)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a path that ends in .py has both
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # where the annotations of its classes are looked up
    spec.loader.exec_module(loaded)
    question_type = getattr(loaded, constant)
    return rendered_prompts(question_type, question_type.examples[0])
