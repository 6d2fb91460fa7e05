"""``openjev ask``: answer one request, given as a JSON document or as a state with questions as flags."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import frozen

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.question_flags import questions_of
from openjev_core.cli.row_runs import settings_for
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.cli.terminal import waiting
from openjev_core.datasets.places import utf8_of
from openjev_core.errors import BackendError, PluginError, RequestError, SettingsError
from openjev_core.json_document import parse_document

if TYPE_CHECKING:
    from openjev_core.client.asking import Answered
    from openjev_core.engine.evaluation import Evaluation
    from openjev_core.settings import Settings

STANDARD_INPUT = "-"

WITH_A_SERVER = frozenset({"request_timeout"})
"""Settings that hold where a server answers: a request says by itself which model and orders it asks for."""

ATTEMPTS = 3
"""How often a server is asked that cannot answer at once: somebody waits."""

A_TEXT_INSTEAD = (
    "; a request is a JSON file, and questions about a text are asked with --state FILE and --noul QUESTION"
)

QUESTION_PANEL = "Questions without JSON"


@takes_settings(without=OF_THE_SERVER | {"sglang_python", "frontend", "startup_timeout"})
def ask(
    request: Annotated[
        str | None,
        typer.Argument(metavar="[FILE|-]", help="A request as JSON, as for POST /v1/systemone; - reads it from input."),
    ] = None,
    *,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Send the request as it is to a running server, as its client: to POST /v1/systemone, and one with an "
            "input to OpenAI's POST /v1/decisions. OPENJEV_API_KEY is sent as its key. Without it, a model in this "
            "process answers, or one that --connect opens behind it.",
        ),
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
    """Answer a request on a model in this process or on a running server, and print a table of the answers.

    Give a request as a JSON file, or a state with --state and questions as flags.
    """
    settings = settings_for(url, flags, WITH_A_SERVER)
    asked = requested(request, state, nouls=noul or (), choices=choice or (), scores=score or ())
    if url is not None:
        import asyncio  # noqa: PLC0415 - slow to import

        reply = asyncio.run(reply_of(url, asked, settings))
        if as_json:
            print_json(reply.body)
            return
        from openjev_core.cli.answer_table import print_answers, token_text  # noqa: PLC0415

        print_answers(reply.answers, f"{reply.model}: {reply.seconds * 1000:.0f} ms; {token_text(*reply.usage)}")
        return
    from openjev_core.prompts.state import MEDIA  # noqa: PLC0415

    document = asked.document
    if isinstance(document, dict) and (media := [name for name in MEDIA if document.get(name) is not None]):
        raise RequestError.at((media[0],), "this program reads text only; leave the field out")
    if settings.sglang_python and not settings.connect:
        msg = "OPENJEV_SGLANG_PYTHON: ask starts no SGLang; unset it, or name a running one with --connect"
        raise SettingsError(msg)
    with redirect_stdout(sys.stderr):  # what a question type prints must not stand in the answer
        evaluation, demo = answered(document, settings)
    if as_json:
        print_json(evaluation.body())
        return
    from openjev_core.cli.answer_table import print_answers, timing_line  # noqa: PLC0415

    print_answers(evaluation.answers, timing_line(evaluation), demo=demo)


@frozen
class Asked:
    """A request.

    Attributes:
        document: Its document.
        written: Its bytes, where it was given as a file.
    """

    document: Any
    written: bytes | None = None


async def reply_of(url: str, asked: Asked, settings: Settings) -> Answered:
    """What a running server answers.

    Raises:
        RequestError: It refuses the request.
        OpenJevError: There is no answer.
    """
    from openjev_core.client.asking import ask_server  # noqa: PLC0415
    from openjev_core.client.server import Refused, open_server  # noqa: PLC0415

    if not isinstance(asked.document, dict):
        raise RequestError.at((), "expected a request, which is a JSON object")
    key = settings.api_key[0] if settings.api_key else None
    async with open_server(url, api_key=key, seconds=settings.request_timeout, attempts=ATTEMPTS) as server:
        try:
            return await ask_server(server, asked.document, asked.written)
        except Refused as refusal:
            if refusal.status == PluginError.status:
                raise BackendError(str(refusal)) from None
            raise RequestError(refusal.problems) from None


def print_json(body: Mapping[str, Any]) -> None:
    """Print a response's body. What standard output cannot show is escaped, which is the same JSON."""
    escape = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    typer.echo(json.dumps(body, indent=2, ensure_ascii=escape))


def requested(request: str | None, state: str | None, **questions: Any) -> Asked:
    """The request, from the one of the two ways that was used.

    Raises:
        RequestError: Both or neither were used, or something given is not of its form.
    """
    flagged = any(questions.values())
    if request is not None and (state is not None or flagged):
        raise RequestError.at((), "a request FILE has its own state and questions: give it, or --state with questions")
    if request is not None:
        written = content_of(request, A_TEXT_INSTEAD)
        return Asked(parse_document(written, "the body" if request == STANDARD_INPUT else request), written)
    if state is None or not flagged:
        msg = (
            "nothing to ask: give a request FILE (or - for standard input), or --state FILE with at least one of "
            "--noul, --choice and --score"
        )
        raise RequestError.at((), msg)
    # Questions first: standard input need not be waited for when a flag is wrong.
    parsed = questions_of(**questions)
    return Asked({"model": "jev-latest", "state": state_from(state), "questions": parsed})


def answered(document: Any, settings: Settings) -> tuple[Evaluation, bool]:
    """The evaluation, and whether the demo model made it."""
    from openjev_core.engine import opening  # noqa: PLC0415

    registry = installed_types(settings)

    async def run() -> tuple[Evaluation, bool]:
        with waiting() as progress:
            async with opening.open_engine(settings, registry=registry, progress=progress) as engine:
                structured = engine.structure(document)
                progress(f"reading {len(structured.questions)} questions")
                return await engine.evaluate_request(structured), engine.model.demo

    import asyncio  # noqa: PLC0415 - slow to import

    return asyncio.run(run())


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
