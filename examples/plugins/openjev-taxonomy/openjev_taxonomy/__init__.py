"""Taxonomy: one leaf of a tree of options, found level by level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field, frozen, validators

from openjev_core import (
    Content,
    Distribution,
    InvalidQuestion,
    Option,
    QuestionType,
    Readout,
    Rounds,
    content_text,
    hookimpl,
    question_text,
    setting,
    setting_values,
)
from openjev_taxonomy.tree import Node, Path, children_of, leaves_of, most_probable, next_beam, parts_of, probabilities

WITHOUT_INSTRUCTIONS = "Which category does the material belong to?"
STEP = " > "
"""Between the names of a path, where it is shown."""


@frozen(kw_only=True)
class TaxonomySettings:
    """What a server allows."""

    max_parts: int = setting(64, setting_values.integer(2, 1000), "parts that one part of a tree may have")


@frozen(kw_only=True)
class Taxonomy:
    """A question whose options are the leaves of a tree.

    Attributes:
        criteria: The tree: names of its parts, each a node or null. A null, or a node without children, is a leaf. A
            part has as many parts as the setting OPENJEV_TAXONOMY_MAX_PARTS allows, by default 64.
        instructions: What to decide; a general question when absent.
        beam: How many parts of a level are looked into, 1 to 64. More cost more readouts and miss less.
    """

    criteria: dict[str, Node | None]
    instructions: Content | None = None
    beam: int = field(default=3, validator=[validators.ge(1), validators.le(64)])


@frozen(kw_only=True)
class Part:
    """A leaf or a part of the tree, and how probable it is.

    Attributes:
        path: Names from the top of the tree.
        probability: In [0, 1].
    """

    path: list[str]
    probability: float


@frozen(kw_only=True)
class TaxonomyAnswer:
    """The answer to a taxonomy question.

    Attributes:
        path: Names from the top of the tree to the most probable leaf that was reached.
        probability: Of that leaf: the product of the choices that lead to it.
        leaves: Every leaf that was reached, most probable first.
        aside: Every part that was not looked into, most probable first; with the leaves they sum to 1. Where one is
            more probable than the answer, a better leaf may be in it, which a wider beam would have found.
        confidence: In [0, 1]: that of the least certain choice on the way.
    """

    path: list[str]
    probability: float
    leaves: list[Part]
    aside: list[Part]
    confidence: float


def readouts(question: Taxonomy, settings: TaxonomySettings) -> Rounds:
    """One readout for each part that is looked into, a level a round: which parts, is decided by the level before."""
    if not question.criteria:
        raise InvalidQuestion("a taxonomy question needs at least one option, found none", ("criteria",))
    # Here, and not when the beam comes by: whether a question is valid must not depend on what is read.
    for path, children in parts_of(question.criteria):
        if len(children) > settings.max_parts:
            msg = f"a part takes at most {settings.max_parts} parts, found {len(children)}"
            raise InvalidQuestion(msg, place_of(path))
    asked = question_text(question.instructions, WITHOUT_INSTRUCTIONS)
    found: list[Distribution] = []
    beam: list[Path] = [()]
    while beam:
        found += yield [choice_within(question, asked, path) for path in beam]
        beam = next_beam(question.criteria, question.beam, beam, probabilities(found))


def choice_within(question: Taxonomy, asked: str, path: Path) -> Readout:
    """The choice between the parts of one part. The instructions stand first, so that a round reads them once."""
    within = f"\nWithin: {STEP.join(path)}".rstrip() if path else ""
    options = [
        Option(key=name, text=name if node is None or node.description is None else described(name, node.description))
        for name, node in children_of(question.criteria, path).items()
    ]
    return Readout(key=path, text=asked + within, options=tuple(options), loc=place_of(path))


def target(question: Taxonomy, label: Any, readout: Readout) -> str | None:
    """A label is a leaf: its path as names or as text, or its own name where one leaf alone has it."""
    names = tuple(label) if isinstance(label, list) else label
    fitting = [path for path in leaves_of(question.criteria) if names in (path, STEP.join(path))] or [
        path for path in leaves_of(question.criteria) if path[-1] == names
    ]
    if len(fitting) != 1:
        raise InvalidQuestion(f"means {len(fitting)} leaves of the tree; write a leaf's path, as in 'Animals > Birds'")
    (leaf,), depth = fitting, len(readout.key)
    return leaf[depth] if leaf[:depth] == readout.key else None


def place_of(path: Path) -> tuple[str, ...]:
    """Where the parts of a part stand in the question."""
    return ("criteria", *(step for name in path for step in (name, "children")))


def described(name: str, description: Content) -> str:
    """A part's name and description."""
    return f"{name}: {content_text(description)}".strip()


def reduce(question: Taxonomy, distributions: Sequence[Distribution]) -> TaxonomyAnswer:
    """The most probable leaf, and all that was seen beside it."""
    known = probabilities(distributions)
    confidences = {distribution.readout.key: distribution.confidence for distribution in distributions}
    ends = most_probable([path for path in known if path not in confidences], known)
    leaves = [path for path in ends if not children_of(question.criteria, path)]
    best = leaves[0]
    return TaxonomyAnswer(
        path=list(best),
        probability=known[best],
        leaves=[Part(path=list(path), probability=known[path]) for path in leaves],
        aside=[Part(path=list(path), probability=known[path]) for path in ends if children_of(question.criteria, path)],
        confidence=min(confidences[best[:depth]] for depth in range(len(best))),
    )


def leaf(description: str) -> Node:
    """A leaf with a description."""
    return Node(description=description)


TAXONOMY = QuestionType(
    name="taxonomy",
    summary="One leaf of a tree of options, found level by level.",
    api=1,
    question=Taxonomy,
    answer=TaxonomyAnswer,
    readouts=readouts,
    reduce=reduce,
    target=target,
    settings=TaxonomySettings,
    examples=(
        Taxonomy(
            instructions="What is the message about?",
            criteria={
                "Billing": Node(
                    description="Money that was paid or is owed",
                    children={"Refunds": leaf("Money to be given back"), "Invoices": leaf("Bills and receipts")},
                ),
                "Hardware": Node(
                    children={
                        "Router": Node(children={"Lights": None, "Setup": None}),
                        "Phone": leaf("A telephone that plugs into the router"),
                    }
                ),
                "Other": None,
            },
        ),
    ),
)


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Taxonomy."""
    return [TAXONOMY]
