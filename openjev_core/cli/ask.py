"""``openjev ask``: answer one request, given as a JSON document or as a state with questions as flags."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.question_flags import questions_of
from openjev_core.cli.setting_flags import OF_THE_SERVER, settings_from, takes_settings
from openjev_core.cli.terminal import waiting
from openjev_core.datasets.places import utf8_of
from openjev_core.errors import RequestError, SettingsError
from openjev_core.json_document import parse_document

if TYPE_CHECKING:
    from openjev_core.engine.evaluation import Evaluation
    from openjev_core.settings import Settings

STANDARD_INPUT = "-"

QUESTION_PANEL = "Questions without JSON"


@takes_settings(without=OF_THE_SERVER | {"sglang_python", "frontend", "startup_timeout"})
def ask(  # noqa: PLR0917 - typer calls it by keyword
    request: Annotated[
        str | None,
        typer.Argument(metavar="[FILE|-]", help="A request as JSON, as for POST /v1/systemone; - reads it from input."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the response body instead of a table.")] = False,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="What to judge: text, or JSON when the file's name ends in .json.",
            rich_help_panel=QUESTION_PANEL,
        ),
    ] = None,
    noul: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION", help="A yes/no question: 'Is it urgent?'. Repeatable.", rich_help_panel=QUESTION_PANEL
        ),
    ] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION = NAME: DESCRIPTION | NAME | ...",
            help="'Which team? = billing: Payments | technical: Bugs | sales'. A description is optional; a backslash "
            "makes one of = | : plain. Repeatable.",
            rich_help_panel=QUESTION_PANEL,
        ),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION = LOWEST < ... < HIGHEST",
            help="'How angry? = calm < annoyed < furious'. Repeatable.",
            rich_help_panel=QUESTION_PANEL,
        ),
    ] = None,
    **flags: Any,
) -> None:
    """Answer a request on a model in this process, and print a table of the answers.

    Give a request as a JSON file, or a state with --state and questions as flags.
    """
    document = requested(request, state, nouls=noul or (), choices=choice or (), scores=score or ())
    settings = settings_from(flags).settings
    if settings.sglang_python and not settings.connect:
        msg = "OPENJEV_SGLANG_PYTHON: ask starts no SGLang; unset it, or name a running one with --connect"
        raise SettingsError(msg)
    with redirect_stdout(sys.stderr):  # what a question type prints must not stand in the answer
        evaluation, demo = answered(document, settings)
    if as_json:
        # What standard output cannot show is escaped, which is the same JSON.
        escape = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        typer.echo(json.dumps(evaluation.body(), indent=2, ensure_ascii=escape))
        return
    from openjev_core.cli.answer_table import print_answers  # noqa: PLC0415

    print_answers(evaluation, demo=demo)


def requested(request: str | None, state: str | None, **questions: Any) -> Any:
    """The request's document, from the one of the two ways that was used.

    Raises:
        RequestError: Both or neither were used, or something given is not of its form.
    """
    flagged = any(questions.values())
    if request is not None and (state is not None or flagged):
        raise RequestError.at((), "a request FILE has its own state and questions: give it, or --state with questions")
    if request is not None:
        from openjev_core.prompts.state import MEDIA  # noqa: PLC0415

        document = document_from(request)
        if isinstance(document, dict) and (media := [name for name in MEDIA if document.get(name) is not None]):
            raise RequestError.at((media[0],), "this program reads text only; leave the field out")
        return document
    if state is None or not flagged:
        msg = (
            "nothing to ask: give a request FILE (or - for standard input), or --state FILE with at least one of "
            "--noul, --choice and --score"
        )
        raise RequestError.at((), msg)
    # Questions first: standard input need not be waited for when a flag is wrong.
    parsed = questions_of(**questions)
    return {"model": "jev-latest", "state": state_from(state), "questions": parsed}


def answered(document: Any, settings: Settings) -> tuple[Evaluation, bool]:
    """The evaluation, and whether the demo model made it."""
    import asyncio  # noqa: PLC0415

    from openjev_core.engine import opening  # noqa: PLC0415

    registry = installed_types(settings)

    async def run() -> tuple[Evaluation, bool]:
        with waiting() as progress:
            async with opening.open_engine(settings, registry=registry, progress=progress) as engine:
                structured = engine.structure(document)
                progress(f"reading {len(structured.questions)} questions")
                return await engine.evaluate_request(structured), engine.model.demo

    return asyncio.run(run())


def document_from(source: str) -> Any:
    """The JSON document in a file or on standard input.

    Raises:
        RequestError: The file cannot be read, or is no JSON.
    """
    return parse_document(content_of(source), "the body" if source == STANDARD_INPUT else source)


def state_from(source: str) -> Any:
    """The state in a file or on standard input: JSON when the file's name ends in ``.json``, else text as it stands.

    Raises:
        RequestError: The file cannot be read, is no JSON although its name says so, or is no UTF-8.
    """
    content = content_of(source, "; --state takes a file's name, and the text itself with - by standard input")
    if source != STANDARD_INPUT and Path(source).suffix.lower() == ".json":
        try:
            return parse_document(content)
        except RequestError as error:
            raise error.under(source) from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        msg = f"the text is not valid UTF-8: {error.reason} at byte {error.start}"
        raise RequestError.at((source,), msg) from None


def content_of(source: str, hint: str = "") -> bytes:
    """The bytes of a file, or of standard input for ``-``, in UTF-8 where a byte order mark says another encoding.

    Args:
        source: The file's name.
        hint: Added to the message of a file that cannot be read.

    Raises:
        RequestError: The file cannot be read.
    """
    try:
        if source != STANDARD_INPUT:
            return utf8_of(Path(source).read_bytes(), source)
        # Python has no stream where the process was started with standard input closed.
        if sys.stdin is None:
            raise RequestError.at(("standard input",), "cannot be read: it is closed")
        return utf8_of(sys.stdin.buffer.read(), "standard input")
    except (OSError, ValueError) as error:  # ValueError: a name that holds NUL
        place = "standard input" if source == STANDARD_INPUT else source or "''"
        reason = getattr(error, "strerror", None) or str(error)
        raise RequestError.at((place,), f"cannot be read: {reason}{hint}") from None
