"""``openjev ask`` on a model without weights."""

from __future__ import annotations

import json

import pytest

from openjev_core import BackendError

pytestmark = pytest.mark.usefixtures("toy")

QUESTIONS = {
    "urgent": {"type": "noul", "instructions": "Is it urgent?"},
    "team": {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "Payments", "sales": None}},
    "anger": {"type": "score", "instructions": "How angry?", "criteria": ["calm", "annoyed", "furious"]},
}


def request(**changes):
    return json.dumps({"model": "jev-latest", "state": "I was charged twice.", "questions": QUESTIONS, **changes})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "request.json"
    path.write_text(request(), "utf-8")
    return path


def test_json_prints_the_response_body_and_nothing_else(openjev, file):
    result = openjev("ask", file, "--json")
    assert 0 == result.exit_code
    body = json.loads(result.stdout)
    assert ["model", "answers", "usage"] == list(body)
    assert "toy/Toy-1" == body["model"]
    assert ["urgent", "team", "anger"] == list(body["answers"])
    assert {"type", "score", "legend", "probabilities", "confidence"} == set(body["answers"]["anger"])
    assert 4 == body["usage"]["output_tokens"]
    assert "openjev: loading the toy" in result.stderr


def test_standard_input_gives_the_same_answers(openjev, file):
    from_file = json.loads(openjev("ask", file, "--json").stdout)
    assert from_file == json.loads(openjev("ask", "-", "--json", input=request()).stdout)


def test_the_table_shows_every_question_with_its_bars(openjev, file):
    body = json.loads(openjev("ask", file, "--json").stdout)
    result = openjev("ask", file)
    assert 0 == result.exit_code
    for question_id, answer in body["answers"].items():
        line = next(line for line in result.stdout.splitlines() if f" {question_id} " in line)
        value = answer[answer["type"]]
        assert f" {answer['type']} " in line
        assert (f"{value:.3f}" if isinstance(value, float) else value) in line
    assert "█" in result.stdout
    assert f"{body['answers']['team']['probabilities']['billing']:.1%}" in result.stdout
    assert f"{body['answers']['urgent']['noul']:.1%}" in result.stdout
    assert "2 furious" in result.stdout
    assert "toy/Toy-1: queue" in result.stdout
    assert "is no classifier" in result.stdout


def test_a_model_that_the_user_chose_is_not_called_a_demo(openjev, file):
    assert "is no classifier" not in openjev("ask", file, "--model", "mine.gguf").stdout


def test_piped_output_has_no_colours_and_no_progress(openjev, file):
    assert "\x1b" not in openjev("ask", file).output


def test_questions_as_flags_ask_what_the_same_json_asks(openjev, tmp_path):
    state = tmp_path / "state.txt"
    state.write_text("I was charged twice.", "utf-8")
    flags = ["--noul", "Is it urgent?", "--choice", "Which team? = billing: Payments | sales"]
    flagged = openjev("ask", "--state", state, *flags, "--score", "How angry? = calm < annoyed < furious", "--json")
    written = json.loads(openjev("ask", "-", "--json", input=request()).stdout)
    answers = json.loads(flagged.stdout)["answers"]
    assert ["noul_1", "choice_1", "score_1"] == list(answers)
    assert list(written["answers"].values()) == list(answers.values())


def test_a_json_state_is_no_text(openjev, tmp_path):
    chat = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    state = tmp_path / "chat.json"
    state.write_text(json.dumps(chat), "utf-8")
    asked = {"urgent": QUESTIONS["urgent"]}
    flagged = openjev("ask", "--state", state, "--noul", "Is it urgent?", "--json")
    written = openjev("ask", "-", "--json", input=request(state=chat, questions=asked))
    expected = json.loads(written.stdout)["answers"]["urgent"]
    assert expected == json.loads(flagged.stdout)["answers"]["noul_1"]


def test_a_state_on_standard_input_is_text_even_if_it_is_json(openjev):
    flagged = openjev("ask", "--state", "-", "--noul", "Is it urgent?", "--json", input='["a"]')
    written = openjev("ask", "-", "--json", input=request(state='["a"]', questions={"q": QUESTIONS["urgent"]}))
    assert json.loads(written.stdout)["answers"]["q"] == json.loads(flagged.stdout)["answers"]["noul_1"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_a_text(openjev, tmp_path, encoding):
    """PowerShell's ``>`` writes one."""
    (tmp_path / "plain.txt").write_text("Grüße", "utf-8")
    (tmp_path / "marked.txt").write_text("Grüße", encoding)
    (tmp_path / "marked.json").write_text(request(state="Grüße"), encoding)
    assert 0 == openjev("ask", tmp_path / "marked.json").exit_code
    plain, marked = (
        json.loads(openjev("ask", "--state", tmp_path / name, "--noul", "Is it?", "--json").stdout)["answers"]
        for name in ("plain.txt", "marked.txt")
    )
    assert plain == marked


@pytest.mark.parametrize("field", ["assets", "images", "audio", "videos"])
def test_media_in_a_request_is_refused(openjev, field):
    result = openjev("ask", "-", input=request(**{field: ["scan.png"]}))
    assert (2, f"openjev: {field}: this program reads text only; leave the field out\n") == (
        result.exit_code,
        result.stderr,
    )


def test_settings_are_flags(openjev, file):
    plain = json.loads(openjev("ask", file, "--json").stdout)["answers"]["urgent"]["noul"]
    flat = json.loads(openjev("ask", file, "--json", "--temperature", "1000").stdout)["answers"]["urgent"]["noul"]
    assert 0.5 == pytest.approx(flat, abs=0.01)
    assert abs(plain - 0.5) > 0.01


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "openjev: the body is not JSON: Expecting property name enclosed in double quotes at line 1 column 2"),
        ("[NaN]", "openjev: NaN is not JSON"),
        ("[" * 20_000, "openjev: the body is nested too deep"),
        ("[]", "openjev: expected an object with model, state and questions, found an array"),
        ("{}", "openjev: model: missing; this field is required"),
        (request(model="gpt"), "openjev: model: unknown model 'gpt'; served: 'toy/Toy-1'"),
        (request(state=7), "openjev: state: expected a string, an object or an array, found an integer"),
        (request(questions={}), "openjev: questions: a request takes 1 to 64 questions"),
        (request(questions={"q": {"type": "bogus"}}), "openjev: questions.q.type: unknown question type 'bogus'"),
        (
            request(questions={"q": {"type": "choice", "criteria": {}}}),
            "openjev: questions.q.criteria: a choice question takes 1 to 64 options (max_answers), found 0",
        ),
        (
            request(questions={"q": {"type": "score", "criteria": {"a": None, "b": None}}}),
            "openjev: questions.q.criteria: expected an array, found an object",
        ),
        (
            request(questions={"q": {"type": "score", "criteria": ["a", None]}}),
            "openjev: questions.q.criteria.1: expected a string, an object or an array, found null",
        ),
        (request(state="\ud800"), "openjev: state: the text holds the lone surrogate \\ud800"),
        (
            request(state=[{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
            "openjev: state.0.content.0: a part of type 'image_url': this server reads text only",
        ),
        (
            request(questions={"a\nb\x1b[31m": {"type": "noul"}}),
            "openjev: questions.a\\nb\\x1b[31m.instructions: a noul needs instructions",
        ),
    ],
    ids=lambda value: value[:40],
)
def test_bad_input_is_one_line_and_exit_code_2(openjev, text, line):
    result = openjev("ask", "-", input=text)
    assert 2 == result.exit_code
    assert "" == result.stdout
    complaints = [row for row in result.stderr.splitlines() if "loading the toy" not in row and "reading" not in row]
    assert 1 == sum(row.startswith(line) for row in complaints), complaints
    assert len(complaints) == (3 if text == "{}" else 1)


def test_every_problem_has_its_line(openjev):
    questions = {"a": {"type": "bogus"}, "b": {"type": "score", "criteria": "x", "scale": 3}}
    result = openjev("ask", "-", input=request(state=7, questions=questions))
    places = {line.split(": ")[1] for line in result.stderr.splitlines() if not line.endswith("the toy")}
    assert {"state", "questions.a.type", "questions.b.criteria", "questions.b.scale"} == places


def test_invalid_utf8_is_told_with_its_place(openjev, tmp_path):
    state = tmp_path / "latin.txt"
    state.write_bytes("caf\xe9".encode("latin-1"))
    result = openjev("ask", "--state", state, "--noul", "Is it?")
    assert (2, f"openjev: {state}: the text is not valid UTF-8: unexpected end of data at byte 3\n") == (
        result.exit_code,
        result.stderr,
    )


def test_a_file_that_is_no_json_is_named(openjev, tmp_path):
    table = tmp_path / "tickets.csv"
    table.write_text("ticket,text\n")
    result = openjev("ask", table)
    assert (2, f"openjev: {table} is not JSON: Expecting value at line 1 column 1\n") == (
        result.exit_code,
        result.stderr,
    )


def test_an_empty_file_name_is_named(openjev):
    assert openjev("ask", "").stderr.startswith("openjev: '': cannot be read: Is a directory; a request is a JSON file")


def test_a_file_that_is_not_there(openjev):
    result = openjev("ask", "nowhere.json")
    instead = "; a request is a JSON file, and questions about a text are asked with --state FILE and --noul QUESTION\n"
    assert 2 == result.exit_code
    assert "openjev: nowhere.json: cannot be read: No such file or directory" + instead == result.stderr


@pytest.mark.parametrize("text", ["The parcel is late.", "x" * 5000, "a\x00b"])
def test_a_text_in_place_of_a_states_file(openjev, text):
    result = openjev("ask", "--state", text, "--noul", "Is it?")
    assert 2 == result.exit_code
    assert result.stderr.endswith("; --state takes a file's name, and the text itself with - by standard input\n")


@pytest.mark.parametrize(
    "args",
    [(), ("--state", "-"), ("--noul", "Is it?"), ("-", "--noul", "Is it?"), ("-", "--state", "-")],
)
def test_both_ways_at_once_or_neither_is_refused(openjev, args):
    result = openjev("ask", *args, input="x")
    assert 2 == result.exit_code
    assert "--state" in result.stderr
    assert 1 == len(result.stderr.splitlines())


def test_a_setting_that_is_wrong(openjev, file):
    result = openjev("ask", file, "--temperature", "0")
    expected = (2, "openjev: --temperature: expected a finite number above 0, such as 0.5 or 120, found '0'\n")
    assert expected == (result.exit_code, result.stderr)


def test_a_backend_that_fails_is_exit_code_1(openjev, toy, file):
    toy.error = BackendError("the backend said nothing")
    result = openjev("ask", file)
    assert 1 == result.exit_code
    assert result.stderr.splitlines()[-1] == "openjev: the backend said nothing"


def test_an_engine_that_does_not_start_is_exit_code_1(openjev, file, monkeypatch):
    monkeypatch.setenv("OPENJEV_DISABLE_PLUGINS", "openjev")
    result = openjev("ask", file)
    assert 1 == result.exit_code
    assert result.stderr.startswith("openjev: no question types are installed")


def test_an_unknown_variable_is_warned_about(openjev, file, monkeypatch):
    monkeypatch.setenv("OPENJEV_TEMPRATURE", "2")
    result = openjev("ask", file, "--json")
    assert 0 == result.exit_code
    assert "openjev: warning: OPENJEV_TEMPRATURE is not a setting and does nothing" in result.stderr
