"""Distributions that declare plugins, made on the fly in a folder that stands on ``sys.path``."""

from __future__ import annotations

WORKING = """
from __future__ import annotations
from attrs import frozen
from openjev_core import Option, QuestionType, Readout, hookimpl


@frozen(kw_only=True)
class Question:
    instructions: str


@frozen(kw_only=True)
class Answer:
    heads: float


def readouts(question):
    options = (Option(key="heads", text="heads"), Option(key="tails", text="tails"))
    return [Readout(text=question.instructions.strip(), options=options)]


def reduce(question, distributions):
    return Answer(heads=distributions[0]["heads"])


def question_type(**changes):
    fields = dict(
        name="coin", summary="Heads or tails.", api=1, question=Question, answer=Answer, readouts=readouts,
        reduce=reduce, examples=(Question(instructions="Which side?"),),
    )
    return QuestionType(**{**fields, **changes})


@hookimpl
def openjev_question_types():
    return [question_type()]
"""
"""The source of a plugin that works."""


def working(**changes):
    """The source of a plugin whose question type differs in these attributes, given as source."""
    written = ", ".join(f"{name}={value}" for name, value in changes.items())
    return WORKING.replace("[question_type()]", f"[question_type({written})]")


def install(site, name, source, *, module=None, version="1.0", entry_point=None, files=()):
    """Put a distribution with one plugin into ``site``.

    Args:
        site: A folder on ``sys.path``.
        name: The distribution's name.
        source: The plugin module's source.
        module: The module's name; made from the distribution's when ``None``.
        version: The distribution's version.
        entry_point: The entry point's name; the module's when ``None``.
        files: Further files as ``(path, text)``.
    """
    module = module or name.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    for path, text in files:
        (site / path).write_text(text)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[openjev]\n{entry_point or module} = {module}\n")
