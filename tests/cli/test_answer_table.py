"""The table of answers."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from openjev_core.cli.answer_table import OptionStyle, bar, option_lines, style_for, table_of

ASCII = OptionStyle(ascii_only=True)


def drawn(answers, style=None, width=100):
    out = Console(file=io.StringIO(), width=width)
    out.print(table_of(answers, style or style_for(out)))
    return out.file.getvalue()


def lines(answer):
    return [line.plain.rstrip() for line in option_lines(answer, ASCII)]


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(0.0, ""), (1.0, "█" * 16), (0.5, "█" * 8), (1 / 128, "▏"), (0.5390625, "█" * 8 + "▋")],
)
def test_a_bar_is_as_long_as_the_probability(probability, expected):
    assert expected.ljust(16) == bar(probability, OptionStyle())


def test_without_block_characters_a_bar_is_made_of_signs():
    assert "####" + " " * 12 == bar(0.25, ASCII)
    assert drawn({"q": {"type": "noul", "noul": 0.5}}, ASCII).count("#") == 16


def test_a_noul_shows_yes_and_no():
    assert ["yes  25.0% ####", "no   75.0% ############"] == lines({"type": "noul", "noul": 0.25})


def test_levels_show_what_the_legend_says():
    answer = {
        "type": "score",
        "score": 1.0,
        "legend": {"0": "calm", "1": {"level": "angry"}},
        "probabilities": {"0": 0.0, "1": 1.0},
        "confidence": 1.0,
    }
    assert ["0 calm              ", '1 {"level":"angry"} '] == [line[:20].ljust(20) for line in lines(answer)]


def test_another_plugins_answer_shows_everything_that_is_in_it():
    answer = {"type": "tags", "tags": ["a", "b"], "threshold": 0.5, "x_order_spread": 0.1, "note": "ü"}
    shown = drawn({"q": answer})
    for expected in ('["a","b"]', "threshold: 0.5", "x_order_spread: 0.1", "note: ü"):
        assert expected in shown


def test_a_failed_question_says_why():
    answer = {"type": "tags", "x_error": {"error_type": "plugin_error", "message": "reduce raised KeyError"}}
    assert "failed: reduce raised" in drawn({"q": answer})


def test_names_can_do_nothing_to_a_terminal():
    shown = drawn({"[red]\x1b[31m\n\u202e": {"type": "choice", "choice": "[b]", "probabilities": {"[b]": 1.0}}})
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert r"[red]\x1b[31m\n\u202e" in shown
    assert "[b]" in shown


def test_a_long_name_is_cut_with_a_sign_of_it():
    (line,) = lines({"type": "choice", "choice": "x", "probabilities": {"n" * 60: 1.0}})
    assert "n" * 27 + "… 100.0% " + "#" * 16 == line


def test_on_eighty_columns_every_option_has_one_line():
    legend = {"0": "calm", "1": "annoyed, and says so in many words"}
    probabilities = {"0": 0.25, "1": 0.75}
    answer = {"type": "score", "score": 0.75, "legend": legend, "probabilities": probabilities, "confidence": 0.1}
    table = drawn({"frustration": answer}, width=80)
    assert 1 == sum("0 calm                25.0% ██" in line for line in table.splitlines())
    assert 1 == sum("1 annoyed, and says…  75.0% ██████" in line for line in table.splitlines())
