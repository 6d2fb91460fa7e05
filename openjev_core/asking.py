"""What a question's type asks for: readouts one by one, and rounds whose distributions it gets before it asks on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

from openjev_core.errors import InvalidQuestion, PluginError, RequestError
from openjev_core.question import Distribution, Option, QuestionType, Readout

log = logging.getLogger(__name__)


class Asking:
    """One question's readouts while its type asks for them. Runs the type's code, which may hang; one thread at a time.

    Args:
        question_type: The question's type.
        question: An instance of the type's question class.
        max_answers: Options in a readout; ``None`` where whoever answers has a limit of their own.

    Attributes:
        waits: How many distributions the type waits for before it asks on: those of the last readouts of the round that
            was pulled last. 0 when it asks no more.
        rounds: Rounds pulled so far.
        readouts: Readouts pulled so far.
        certain: Those of them that have one option; counted where they are planned.
    """

    def __init__(self, question_type: QuestionType[Any, Any], question: Any, max_answers: int | None = None) -> None:
        self.type = question_type
        self.question = question
        self.max_answers = max_answers
        self.waits = 0
        self.rounds = 0
        self.readouts = 0
        self.certain = 0
        self._source: Generator[Any, Any, Any] | None = None
        self._is_generator = False

    def pull(self, distributions: Sequence[Distribution] = ()) -> Iterator[Readout]:
        """The readouts of the next round, one by one, so that an endless generator ends at the token limit.

        A round ends with the type's readouts, or with a sequence of them whose distributions it waits for.

        Args:
            distributions: Those that the type waits for; none in the first round.

        Raises:
            InvalidQuestion: As the type raises it.
            RequestError: The question asks for too few or too many options.
            PluginError: For anything else that the type raises, and where it breaks its contract.
        """
        self.waits = 0
        self.rounds += 1
        for pulled in self._pulled(tuple(distributions)):
            if not isinstance(pulled, Sequence) or isinstance(pulled, str):
                self.readouts += 1
                yield self._checked(pulled)
                continue
            if not self._is_generator:
                rule = f"readouts gave a {type(pulled).__name__}, whose distributions only a generator can be given"
                raise PluginError(self.type.name, rule)
            if not pulled:
                rule = "readouts yielded an empty sequence; yield at least one Readout, or none and go on"
                raise PluginError(self.type.name, rule)
            self.readouts += len(pulled)
            yield from map(self._checked, pulled)
            self.waits = len(pulled)
            return

    def _pulled(self, distributions: tuple[Distribution, ...]) -> Iterator[Readout | Sequence[Readout]]:
        """What the type gives, each pulled under guard: generators raise late."""
        sent: Any = distributions or None
        while True:
            try:
                if self._source is None:
                    self._source = self._started()
                pulled = self._source.send(sent)
            except StopIteration:
                return
            except (InvalidQuestion, PluginError):
                raise
            except BaseException as error:
                # Also a SystemExit: passed on, it would end the server.
                raise PluginError(self.type.name, f"readouts raised {type(error).__name__}") from error
            sent = None
            yield pulled

    def _started(self) -> Generator[Any, Any, Any]:
        given: object = self.type.readouts(self.question)
        if not isinstance(given, Iterable):
            rule = f"readouts returned {type(given).__name__}; yield each Readout, or return a list of them"
            raise PluginError(self.type.name, rule)
        self._is_generator = isinstance(given, Generator)
        return given if isinstance(given, Generator) else (one for one in given)

    def _checked(self, readout: Readout) -> Readout:
        check_readout(self.type, readout, self.max_answers)
        return readout

    def close(self) -> None:
        """End the type's generator. Python would do it too, but in whatever thread lets go of it last."""
        if self._source is None or getattr(self._source, "gi_running", False):
            return  # a thread that still runs it closes it when it is done
        try:
            self._source.close()
        except BaseException as error:  # noqa: BLE001 - also a SystemExit; nobody is left whom it could tell
            log.warning("question type %r raised %s when it was closed", self.type.name, type(error).__name__)


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
        rule = f"readouts gave a {type(readout).__name__}, not a Readout or a sequence of them"
        raise PluginError(name, rule)
    if not isinstance(readout.loc, tuple) or not all(isinstance(part, (str, int)) for part in readout.loc):
        raise PluginError(name, "a readout's loc is no tuple of field names and positions")
    if not isinstance(readout.text, str) or readout.text != readout.text.strip():
        raise PluginError(name, "a readout's text is no string without outer white space")
    if not isinstance(readout.options, tuple):
        raise PluginError(name, f"a readout's options are a {type(readout.options).__name__}, not a tuple of Option")
    if not all(isinstance(option, Option) and isinstance(option.text, str) for option in readout.options):
        raise PluginError(name, "a readout's options are not all Option records with a text")
    count = len(readout.options)
    if count < 1 or (max_answers is not None and count > max_answers):
        accepted = "1 or more options" if max_answers is None else f"1 to {max_answers} options (max_answers)"
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


def asked_of(
    question_type: QuestionType[Any, Any],
    question: Any,
    distribution_of: Callable[[Readout, int], Distribution],
    most: int,
    max_answers: int | None = None,
) -> Iterator[Distribution]:
    """What a type asks for where the distributions are known: for checks, digests and labels. No model is read.

    Args:
        question_type: The type.
        question: An instance of its question class.
        distribution_of: Gives the distribution of a readout and its position.
        most: Readouts after which a type that asks for ever is closed.
        max_answers: As for :class:`Asking`.

    Raises:
        RequestError, PluginError: As :meth:`Asking.pull`.
    """
    asking = Asking(question_type, question, max_answers)
    found: list[Distribution] = []
    try:
        while True:
            for readout in asking.pull(found[len(found) - asking.waits :]):
                found.append(distribution_of(readout, len(found)))
                yield found[-1]
                if len(found) == most:
                    return
            if not asking.waits:
                return
    finally:
        asking.close()
