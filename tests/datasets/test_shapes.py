"""Reading labels and answers of any question type by its own reducer."""

from __future__ import annotations

from collections.abc import Sequence

import openjev_choice
import openjev_noul
import openjev_score
import pytest
from attrs import frozen

from openjev_core import Distribution, Option, QuestionType, Readout, RequestError
from openjev_core.datasets.checked_rows import check_questions, check_rows
from openjev_core.datasets.reorderings import reorderings
from openjev_core.datasets.rows import Row
from openjev_core.datasets.shapes import shape_of
from openjev_core.plugins.registry import registry_of
from openjev_core.plugins.structuring import QuestionConverter


@frozen(kw_only=True)
class Tags:
    """Several labels at once: a third party's type of many readouts."""

    tags: list[str]


@frozen(kw_only=True)
class TagsAnswer:
    chosen: list[str]


def tag_readouts(question: Tags):
    for tag in question.tags:
        options = (Option(key=True, text=f"{tag} applies"), Option(key=False, text="it does not"))
        yield Readout(text=f"Does {tag} apply?", options=options, key=tag)


def tag_reduce(question: Tags, distributions: Sequence[Distribution]) -> TagsAnswer:
    return TagsAnswer(chosen=[str(d.readout.key) for d in distributions if d[True] > 0.5])


TAGS = QuestionType(
    name="tags", summary="Several.", api=1, question=Tags, answer=TagsAnswer, readouts=tag_readouts, reduce=tag_reduce
)
CONVERTER = QuestionConverter(
    registry_of(
        *openjev_noul.openjev_question_types(),
        *openjev_choice.openjev_question_types(),
        *openjev_score.openjev_question_types(),
        TAGS,
    )
)
NOUL = {"type": "noul", "instructions": "So?"}
CHOICE = {"type": "choice", "criteria": {"billing": "Payments", "technical": "Bugs", "1": None}}
SCORE = {"type": "score", "criteria": ["low", "middle", "high"]}


def shape(question):
    return shape_of(question, CONVERTER)


def row(number, questions, labels=None):
    return Row(
        number=number,
        place=f"data.jsonl line {number}",
        id=str(number),
        state="A state.",
        questions=questions,
        labels=labels or {},
        fields={},
    )


@pytest.mark.parametrize(
    ("question", "kind", "headline", "names"),
    [
        (NOUL, "binary", "noul", ("Yes", "No")),
        (CHOICE, "nominal", "choice", ("billing", "technical", "1")),
        (SCORE, "ordinal", "score", ("0", "1", "2")),
        ({"type": "score", "criteria": ["low", "high"]}, "ordinal", "score", ("0", "1")),
        ({"type": "tags", "tags": ["a", "b"]}, "joint", "chosen", ("['a', 'b']", "['a']", "['b']", "[]")),
    ],
)
def test_kinds_are_found_out(question, kind, headline, names):
    found = shape(question)

    assert (kind, headline, names) == (found.kind, found.headline, found.names)


@pytest.mark.parametrize(
    ("question", "label", "outcome"),
    [
        (NOUL, True, 0), (NOUL, False, 1), (NOUL, "true", 0), (NOUL, "No", 1), (NOUL, 1, 0), (NOUL, "0", 1),
        (CHOICE, "technical", 1), (CHOICE, " Technical ", 1), (CHOICE, "1", 2),
        (SCORE, 2, 2), (SCORE, "2", 2), (SCORE, 1.0, 1), (SCORE, "1.0", 1),
        ({"type": "tags", "tags": ["a", "b"]}, ["b"], 2), ({"type": "tags", "tags": ["a", "b"]}, [], 3),
    ],
)  # fmt: skip
def test_labels_are_what_a_certain_answer_would_be(question, label, outcome):
    assert outcome == shape(question).outcome_of(label)


@pytest.mark.parametrize(
    ("question", "label"),
    [
        (NOUL, "maybe"), (NOUL, 0.5), (NOUL, 2), (NOUL, None), (NOUL, " "),
        (CHOICE, "bill"), (CHOICE, 1), (CHOICE, True),
        (SCORE, 3), (SCORE, 1.5), (SCORE, True), (SCORE, "low"), (SCORE, [1]),
    ],
)  # fmt: skip
def test_labels_that_fit_nothing_are_refused(question, label):
    with pytest.raises(RequestError, match="fits no option; accepted: "):
        shape(question).outcome_of(label)


def test_accents_may_be_written_in_two_ways():
    question = {"type": "choice", "criteria": {"caf\u00e9": None, "bar": None}}

    assert 0 == shape(question).outcome_of("cafe\u0301")


@pytest.mark.parametrize("label", ["NaN", "null", "N/A", float("nan")])
def test_what_a_program_writes_for_a_missing_label_is_no_label(label):
    with pytest.raises(RequestError, match=r"fits no option; .*; leave the cell empty where there is no label"):
        shape(CHOICE).outcome_of(label)


def test_a_label_that_looks_like_an_option_shows_what_differs():
    with pytest.raises(RequestError, match=r"the label 'billing\\u200b' fits no option"):
        shape(CHOICE).outcome_of("billing\u200b")


def test_a_label_that_fits_two_is_refused():
    question = {"type": "choice", "criteria": {"Yes": None, "YES": None, "no": None}}

    assert 1 == shape(question).outcome_of("YES")
    with pytest.raises(RequestError, match="more than one outcome: 'Yes', 'YES'"):
        shape(question).outcome_of("yes")


@pytest.mark.parametrize(
    ("question", "answer", "probabilities", "predicted"),
    [
        (NOUL, {"noul": 0.75}, [0.75, 0.25], 0),
        (NOUL, {"noul": 0.25}, [0.25, 0.75], 1),
        (NOUL, {"noul": None}, None, None),
        (
            CHOICE,
            {"choice": "1", "probabilities": {"1": 0.5, "technical": 0.3, "billing": 0.2}},
            [0.2, 0.3, 0.5],
            2,
        ),
        (CHOICE, {"choice": None, "probabilities": {"billing": 1.0}}, None, None),
        (SCORE, {"score": 1.1, "probabilities": {"0": 0.4, "1": 0.1, "2": 0.5}}, [0.4, 0.1, 0.5], 2),
        ({"type": "tags", "tags": ["a", "b"]}, {"chosen": ["a"]}, None, 1),
    ],
)
def test_answers_are_read_where_certain_ones_say_it(question, answer, probabilities, predicted):
    found = shape(question)

    assert (probabilities, predicted) == (found.probabilities(answer), found.predicted(answer))


def test_two_outcomes_with_one_answer_are_told_apart_by_their_keys():
    def readouts(question):
        options = [Option(key=key, text=key) for key in ("yes", "unclear", "absent")]
        yield Readout(text="Which?", options=options)

    def reduce(question, distributions):
        top = distributions[0].top.key
        return Abstaining(choice=top if top == "yes" else None)

    @frozen(kw_only=True)
    class Ask:
        pass

    @frozen(kw_only=True)
    class Abstaining:
        choice: str | None

    kind = QuestionType(
        name="ask", summary="May abstain.", api=1, question=Ask, answer=Abstaining,
        readouts=readouts, reduce=reduce,
    )  # fmt: skip
    found = shape_of({"type": "ask"}, QuestionConverter(registry_of(kind)))

    assert ("yes", "unclear", "absent") == found.names
    assert 2 == found.outcome_of("absent")
    assert 2 == found.predicted({"choice": None}, 2)
    assert 1 == found.predicted({"choice": None}, 0)


def test_labels_among_too_many_combinations_are_refused():
    many = shape({"type": "tags", "tags": [f"t{i}" for i in range(20)]})

    with pytest.raises(RequestError, match="20 readouts has 1048576 possible answers"):
        many.outcome_of(["t1"])


def test_only_options_that_a_client_lists_are_reordered():
    found = reorderings(CHOICE, shape(CHOICE), CONVERTER, "seed")

    assert ["1", "technical", "billing"] == list(found["reversed"].wire["criteria"])
    assert (2, 1, 0) == found["reversed"].order
    assert 2 == found["reversed"].given(0)
    assert found["reversed"].given(None) is None
    assert list(found["shuffled"].wire["criteria"]) not in (
        ["billing", "technical", "1"],
        ["1", "technical", "billing"],
    )
    assert {} == reorderings(NOUL, shape(NOUL), CONVERTER, "seed")
    described = {"type": "noul", "criteria": {"true": "It is", "false": "It is not"}}
    assert {} == reorderings(described, shape(described), CONVERTER, "seed")
    assert {} == reorderings(SCORE, shape(SCORE), CONVERTER, "seed")
    tags = {"type": "tags", "tags": ["a", "b"]}
    assert {} == reorderings(tags, shape(tags), CONVERTER, "seed")


def test_two_options_are_reversed_and_not_shuffled():
    two = {"type": "choice", "criteria": {"a": None, "b": None}}

    assert ["reversed"] == list(reorderings(two, shape(two), CONVERTER, "seed"))


def test_a_random_order_is_the_same_every_time():
    many = {"type": "choice", "criteria": dict.fromkeys("abcdefgh")}
    orders = [reorderings(many, shape(many), CONVERTER, seed)["shuffled"].order for seed in ("1", "1", "2")]

    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_every_bad_row_is_named():
    rows = [
        row(1, {"q": NOUL}, {"q": "perhaps"}),
        row(2, {"q": {"type": "noul", "instruction": "So?"}}),
        row(3, {"q": {"type": "bogus"}}),
        row(4, {"q": CHOICE}),
        row(5, {"q": {"type": "choice", "criteria": {}}}),
    ]

    with pytest.raises(RequestError) as refused:
        check_rows(rows, CONVERTER, labelled=True)

    told = [f"{problem.loc[0]}: {problem.msg}" for problem in refused.value.problems]
    assert "data.jsonl line 1: labels.q: the label 'perhaps' fits no option; accepted: Yes, No" == told[0]
    assert told[1].startswith("data.jsonl line 2: questions.q.instruction: unknown field")
    assert told[2].startswith("data.jsonl line 3: questions.q.type: unknown question type 'bogus'")
    assert told[3].startswith("data.jsonl line 4: questions.q.type: is a choice here and a noul in data.jsonl line 1")
    assert "data.jsonl line 5: questions.q.criteria: a choice question takes 1 or more options, found 0" == told[4]
    assert 5 == len(told)


def test_many_bad_rows_are_counted():
    rows = [row(number, {"q": NOUL}, {"q": "perhaps"}) for number in range(1, 101)]

    with pytest.raises(RequestError) as refused:
        check_rows(rows, CONVERTER, labelled=True)

    assert 21 == len(refused.value.problems)
    assert "and 80 more problems of this kind in other rows" == refused.value.problems[-1].msg


def test_rows_without_any_label_cannot_be_judged():
    with pytest.raises(RequestError, match="no question has a label"):
        check_rows([row(1, {"q": NOUL})], CONVERTER, labelled=True)

    assert check_rows([row(1, {"q": NOUL})], CONVERTER, labelled=False)[1]["q"].label is None


def test_a_type_that_only_a_server_has_is_left_to_it():
    rows = [row(1, {"q": {"type": "bogus"}, "r": NOUL})]

    check_questions(rows, CONVERTER, known={"noul"})
    with pytest.raises(RequestError, match="unknown question type"):
        check_questions(rows, CONVERTER)


@pytest.mark.parametrize("kind", [["noul"], {}, None, 1])
def test_a_type_that_is_no_text_is_nobodys(kind):
    with pytest.raises(RequestError, match=r"line 1: questions\.q\.type"):
        check_questions([row(1, {"q": {"type": kind}})], CONVERTER, known=frozenset({"noul"}))


@pytest.mark.parametrize(
    ("options", "label", "words"),
    [
        (["1", "2"], 1, 'the label 1 fits no option; accepted: 1, 2; write the name of an option as a text: "1"'),
        (["yes", "no"], ["yes"], "the label ['yes'] fits no option; accepted: yes, no"),
        (
            ["caf\u00e9", "cafe\u0301"],
            "CAF\u00c9",
            "the label 'CAF\u00c9' fits more than one outcome: 'caf\\xe9', 'cafe\\u0301'",
        ),
    ],
)
def test_a_label_of_another_kind_or_spelling_is_told_what_differs(options, label, words):
    shape = shape_of({"type": "choice", "criteria": dict.fromkeys(options)}, CONVERTER)

    with pytest.raises(RequestError) as refused:
        shape.outcome_of(label)

    assert words == refused.value.problems[0].msg


@pytest.mark.parametrize(("option", "label"), [("caf\u00e9", "cafe\u0301"), ("cafe\u0301", "caf\u00e9")])
def test_an_accent_may_be_written_in_two_ways(option, label):
    assert 0 == shape_of({"type": "choice", "criteria": {option: None, "tea": None}}, CONVERTER).outcome_of(label)
