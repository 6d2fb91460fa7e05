"""The tree that the module's docstring draws is the tree of its classes, and each class is what it says."""

from __future__ import annotations

import inspect
import re

import pytest

from openjev_core import errors
from openjev_core.errors import InvalidQuestion, Problem, RequestError, describe_problem

CLASSES = {
    name: cls
    for name, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.OpenJevError) and cls.__module__ == errors.__name__
}


def drawn():
    """Class name to (name of the class above it, what stands behind it), as drawn."""
    tree, above = {}, []
    for line in inspect.getdoc(errors).splitlines():
        match = re.fullmatch(r"((?:[│ ]   |[├└]── )*)(\w+)\s*(.*)", line.removeprefix("    "))
        if match and match[2] in CLASSES:
            depth = len(match[1]) // 4
            del above[depth:]
            tree[match[2]] = (above[-1] if above else None, match[3])
            above.append(match[2])
    return tree


def test_every_class_is_drawn_under_its_own_base():
    assert {name: cls.__base__.__name__ for name, cls in CLASSES.items() if name != "OpenJevError"} == {
        name: parent for name, (parent, _) in drawn().items() if parent
    }
    assert set(CLASSES) == set(drawn())


@pytest.mark.parametrize("name", sorted(set(CLASSES) - {"OpenJevError", "HttpError"}))
def test_statuses_are_as_drawn(name):
    status = re.match(r"\d{3}", drawn()[name][1])
    assert (int(status[0]) if status else None) == CLASSES[name].status


def test_error_types_are_words_of_their_own():
    leaves = [cls for name, cls in CLASSES.items() if cls.status is not None and name != "InvalidQuestion"]
    assert len(leaves) == len({cls.error_type for cls in leaves})


def test_only_what_waiting_cures_asks_to_wait():
    waiting = {name for name, cls in CLASSES.items() if cls.retry_after is not None}
    assert {"BackendUnavailable", "AtCapacity", "Stopping", "Overloaded"} == waiting


def test_paths_are_put_before_each_problem():
    error = RequestError([Problem(("a",), "one"), Problem((), "two", "missing")]).under("questions", "q")
    assert (("questions", "q", "a"), ("questions", "q")) == tuple(p.loc for p in error.problems)
    assert "questions.q.a: one; questions.q: two" == str(error)


def test_an_invalid_question_has_a_path_inside_the_question():
    error = InvalidQuestion("two options of one name", ["criteria", 2])
    assert ("criteria", 2) == error.problems[0].loc
    assert "wrong" == describe_problem(Problem((), "wrong"))
