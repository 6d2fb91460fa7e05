"""Getting a question's readouts from its type, and holding them to the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openjev_core.errors import InvalidQuestion, PluginError, RequestError
from openjev_core.question import Option, QuestionType, Readout


def pull_readouts(question_type: QuestionType[Any, Any], question: Any) -> Iterator[Readout]:
    """A question's readouts, one by one, so that an endless generator ends at the token limit.

    Raises:
        InvalidQuestion: As the type raises it.
        PluginError: For anything else that it raises. Generators raise late, hence the guard around every pull.
    """
    try:
        yield from question_type.readouts(question)
    except (InvalidQuestion, GeneratorExit):
        raise
    except BaseException as error:
        # Also a SystemExit: passed on, it would end the server.
        raise PluginError(question_type.name, f"readouts raised {type(error).__name__}") from error


def check_readout(question_type: QuestionType[Any, Any], readout: object, max_answers: int | None) -> None:
    """Hold a readout to the contract.

    Args:
        question_type: Its type.
        readout: What the type gave.
        max_answers: How many options it may have; ``None`` where whoever answers has a limit of their own.

    Raises:
        RequestError: The question asks for too few or too many options.
        PluginError: The type's own fault.
    """
    name = question_type.name
    if not isinstance(readout, Readout):
        raise PluginError(name, f"readouts gave a {type(readout).__name__}, not a Readout")
    if not isinstance(readout.loc, tuple) or not all(isinstance(part, (str, int)) for part in readout.loc):
        raise PluginError(name, "a readout's loc is no tuple of field names and positions")
    if not isinstance(readout.text, str) or readout.text != readout.text.strip():
        raise PluginError(name, "a readout's text is no string without outer white space")
    if not all(isinstance(option, Option) and isinstance(option.text, str) for option in readout.options):
        raise PluginError(name, "a readout's options are not all Option records with a text")
    count = len(readout.options)
    if count < 2 or (max_answers is not None and count > max_answers):  # noqa: PLR2004 - one option is no question
        accepted = "2 or more options" if max_answers is None else f"2 to {max_answers} options (max_answers)"
        msg = f"a {name} question takes {accepted}, found {count}"
        raise RequestError.at(readout.loc, msg, "option_count")
    check_keys_and_labels(question_type, readout)


def check_keys_and_labels(question_type: QuestionType[Any, Any], readout: Readout) -> None:
    """Hold what tells a readout's options apart to the contract.

    Raises:
        PluginError: Two options share a key or label, or a label is not declared.
    """
    name, count = question_type.name, len(readout.options)
    try:
        keys = {option.key for option in readout.options}
    except TypeError:
        raise PluginError(name, "an option's key cannot be hashed") from None
    if len(keys) != count:
        raise PluginError(name, "two options of a readout have one key")
    own = [option.label for option in readout.options if option.label is not None]
    if not own:
        return
    if len(own) != count or len(set(own)) != count:
        raise PluginError(name, "a readout's options have own labels in part, or one label twice")
    if undeclared := sorted(set(own) - set(question_type.labels)):
        raise PluginError(name, f"a readout uses labels that the type does not declare: {', '.join(undeclared)}")
