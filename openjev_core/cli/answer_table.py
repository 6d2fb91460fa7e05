"""Answers as a table for a person.

Written from the answers' JSON alone, so that the types of other plugins show too: a mapping of probabilities becomes
bars, a ``confidence`` and the field of the type's own name get their columns, and every other field is a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen
from rich.box import HORIZONTALS
from rich.console import Console
from rich.table import Table
from rich.text import Text

from openjev_core.cli.terminal import console, shown
from openjev_core.json_document import compact

if TYPE_CHECKING:
    from openjev_core.engine.evaluation import Evaluation


@frozen
class OptionStyle:
    """How an option's line is drawn.

    Attributes:
        name: Characters of an option's name that are shown.
        bar: Characters of a bar that stands for probability 1.
        ascii_only: The output cannot show block characters.
    """

    name: int = 28
    bar: int = 16
    ascii_only: bool = False


WIDE_FROM = 95
"""Columns from which a table with options of full width does not wrap."""

DEMO_NOTE = (
    "This is the demo model: it shows that everything works and is no classifier. "
    "A better one: --model with a GGUF file or a Hugging Face name."
)


def print_answers(answers: Mapping[str, Mapping[str, Any]], line: str, *, demo: bool = False) -> None:
    """Print a table of the answers, and a line with model, times and tokens below it."""
    out = console()
    out.print(table_of(answers, style_for(out)))
    out.print(Text(shown(line)), soft_wrap=True)
    if demo:
        out.print(Text(DEMO_NOTE, style="yellow"), soft_wrap=True)


def style_for(out: Console) -> OptionStyle:
    """The style that fits an output's width and characters."""
    ascii_only = not out.encoding.startswith("utf")
    return OptionStyle(ascii_only=ascii_only) if out.width >= WIDE_FROM else OptionStyle(20, 8, ascii_only)


def table_of(answers: Mapping[str, Mapping[str, Any]], style: OptionStyle) -> Table:
    """A row per question, with a line per option."""
    table = Table(
        "question", "type", "answer", "options", "confidence", box=HORIZONTALS, show_lines=True, pad_edge=False
    )
    for question_id, answer in answers.items():
        type_name = str(answer["type"])
        confidence = answer.get("confidence")
        table.add_row(
            Text(shown(question_id)),
            Text(shown(type_name)),
            Text(answer_text(answer), style="bold"),
            Text("\n").join(option_lines(answer, style)),
            Text(f"{confidence:.2f}" if isinstance(confidence, float) else ""),
        )
    return table


def answer_text(answer: Mapping[str, Any]) -> str:
    """The answer in a word: the field that has the type's name."""
    if "x_error" in answer:
        return shown(f"failed: {answer['x_error'].get('message', '')}")
    value = answer.get(str(answer["type"]))
    if isinstance(value, float):
        return f"{value:.3f}"
    return "" if value is None else shown(value if isinstance(value, str) else compact(value))


def option_lines(answer: Mapping[str, Any], style: OptionStyle) -> Iterator[Text]:
    """A bar per option, then whatever else the answer holds."""
    probabilities = probabilities_of(answer)
    legend = answer.get("legend")
    names = {
        key: Text(option_name(key, legend if isinstance(legend, dict) else {}, style.name)) for key in probabilities
    }
    width = max((name.cell_len for name in names.values()), default=0)
    for key, probability in probabilities.items():
        name = names[key]
        name.pad_right(width - name.cell_len)
        yield Text.assemble(name, f" {probability:6.1%} ", (bar(probability, style), "cyan"))
    known = {"type", str(answer["type"]), "probabilities", "confidence", "legend", "x_error"}
    for field, value in answer.items():
        if field not in known:
            yield Text(shown(f"{field}: {value if isinstance(value, str) else compact(value)}"))


def probabilities_of(answer: Mapping[str, Any]) -> dict[str, float]:
    """The probabilities in an answer, option by option; a noul's are those of its yes and its no."""
    given = answer.get("probabilities")
    if isinstance(given, dict) and all(isinstance(p, (int, float)) for p in given.values()):
        return {str(key): float(p) for key, p in given.items()}
    if answer["type"] == "noul" and isinstance(answer.get("noul"), float):
        return {"yes": answer["noul"], "no": 1 - answer["noul"]}
    return {}


def option_name(key: str, legend: Mapping[str, Any], longest: int) -> str:
    """An option's name, with what a legend says of it, cut to what a column holds."""
    name = key
    if key in legend:
        described = legend[key]
        name = f"{key} {described if isinstance(described, str) else compact(described)}"
    name = shown(name)
    return name if len(name) <= longest else name[: longest - 1] + "…"


def bar(probability: float, style: OptionStyle) -> str:
    """A probability as a bar, padded; in eighths of a character where these can be shown."""
    if style.ascii_only:
        return ("#" * round(probability * style.bar)).ljust(style.bar)
    full, eighths = divmod(round(min(max(probability, 0.0), 1.0) * style.bar * 8), 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[eighths] if eighths else "")).ljust(style.bar)


def timing_line(evaluation: Evaluation) -> str:
    """Model, times and tokens of an evaluation in this process."""
    times = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in evaluation.timings.phases)
    usage = evaluation.usage
    return f"{evaluation.model}: {times}; {token_text(usage.input_tokens, usage.output_tokens, usage.cached_tokens)}"


def token_text(read: int, made: int, cached: int | None) -> str:
    """Counts of tokens, in words."""
    reused = "" if cached is None else f", {cached} of them reused"
    return f"{read} input tokens{reused}, {made} output tokens"
