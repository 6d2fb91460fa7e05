"""JSON is read strictly and written digit for digit."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openjev_core import RequestError
from openjev_core.json_document import MAX_DEPTH, compact, document_of, parse_document

REFUSED = [
    (b'{"a": 1', (), "line 1 column 8", "json_invalid"),
    (b"{'a': 1}", (), "not JSON", "json_invalid"),
    (b"[1,]", (), "not JSON", "json_invalid"),
    (b"01", (), "not JSON", "json_invalid"),
    (b"1 2", (), "not JSON", "json_invalid"),
    (b'"a\nb"', (), "not JSON", "json_invalid"),
    (b"\xff", (), "not valid UTF-8", "json_invalid"),
    (b'{"a": "\xed\xa0\x80"}', (), "at byte 7", "json_invalid"),
    (b"\xef\xbb\xbf{}", (), "byte order mark", "json_invalid"),
    (b'{"a": NaN}', (), "NaN is not JSON", "json_invalid"),
    (b"", (), "the body is not JSON: it is empty", "json_invalid"),
    (b" \r\n", (), "the body is not JSON: it is empty", "json_invalid"),
    *(
        ('{"a": 1}'.encode(encoding), (), "the body is UTF-16 or UTF-32; send UTF-8", "json_invalid")
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    ),
    (b"[Infinity]", (), "Infinity is not JSON", "json_invalid"),
    (b"[-Infinity]", (), "-Infinity is not JSON", "json_invalid"),
    (b"[1e999]", (), "too large for a double", "json_invalid"),
    (b"[-1e999]", (), "too large for a double", "json_invalid"),
    (b"1" * 4001, (), "more than 4000 digits", "json_invalid"),
    (b"-" + b"1" * 4001, (), "more than 4000 digits", "json_invalid"),
    (b'{"a": 1, "b": {"c": 2, "c": 3}}', (), 'the key "c" twice', "json_invalid"),
    (b'{"\\u0061": 1, "a": 2}', (), 'the key "a" twice', "json_invalid"),
    (b"[" * 20_000, (), "nested too deep", "json_invalid"),
    (b'{"a":' * 20_000, (), "nested too deep", "json_invalid"),
    (b'{"a": ["b", "\\ud800"]}', ("a", 1), "the text holds the lone surrogate \\ud800", "string_unicode"),
    (b'{"a": {"x\\udfff": 1}}', ("a",), "a key holds the lone surrogate \\udfff", "string_unicode"),
    (b'"\\uDC00\\uD800"', (), "\\udc00", "string_unicode"),
    (b'["\\ud83d\\ude42", {"k": ["\\ud83d"]}]', (1, "k", 0), "\\ud83d", "string_unicode"),
]


@pytest.mark.parametrize(("data", "loc", "said", "kind"), REFUSED, ids=[f"{r[2]} {i}" for i, r in enumerate(REFUSED)])
def test_what_cannot_be_kept_as_it_is_is_refused_where_it_stands(data, loc, said, kind):
    with pytest.raises(RequestError) as refused:
        parse_document(data)
    (problem,) = refused.value.problems
    assert (loc, kind) == (problem.loc, problem.type)
    assert said in problem.msg


def nested(depth, opening, closing, innermost):
    return (opening * depth + innermost + closing * depth).encode()


@pytest.mark.parametrize(("opening", "closing", "innermost"), [("[", "]", "1"), ("[", "]", ""), ('{"a":', "}", "1")])
def test_the_depth_limit_counts_arrays_and_objects(opening, closing, innermost):
    parse_document(nested(MAX_DEPTH, opening, closing, innermost))
    with pytest.raises(RequestError, match=f"more than {MAX_DEPTH} arrays"):
        parse_document(nested(MAX_DEPTH + 1, opening, closing, innermost))


def test_many_shallow_arrays_are_not_deep():
    assert [[]] * 1000 == parse_document(b"[" + b",".join([b"[]"] * 1000) + b"]")


def test_brackets_in_text_are_not_depth():
    assert "[" * 1000 == parse_document(b'"' + b"[" * 1000 + b'"')


@pytest.mark.parametrize("digits", ["1" * 4000, "-" + "9" * 4000, "12345678901234567890123", "0", "-0"])
def test_integers_are_kept_digit_for_digit(digits):
    assert str(int(digits)) == compact(parse_document(digits.encode()))


def test_compact_keeps_order_and_characters():
    assert '{"b":["é",null,true],"a":1.5}' == compact({"b": ["é", None, True], "a": 1.5})


def test_escaped_pairs_are_characters():
    assert "🙂" == parse_document(b'"\\ud83d\\ude42"')


def test_the_document_is_named_in_errors():
    with pytest.raises(RequestError, match="the file is not JSON"):
        parse_document(b"x", "the file")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_a_document_is_read_as_it_was_written(value):
    assert value == parse_document(compact(value).encode())
    assert value == parse_document(json.dumps(value).encode())
    assert value == document_of(value)


@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:\\ud8f0123456789.eE+-nulltrfasNIy \n\ufeff', max_size=60))
def test_any_bytes_give_a_value_or_an_error_of_the_request(data):
    data = data if isinstance(data, bytes) else data.encode()
    try:
        value = parse_document(data)
    except RequestError:
        return
    assert value == json.loads(data)


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": math.nan}, "no JSON"),
        ({"a": {1, 2}}, "no JSON"),
        ({"a": b"x"}, "no JSON"),
        ({1: "a", "1": "b"}, "twice"),
        ({"a": "\ud800"}, "lone surrogate"),
        ([10**5000], "no JSON"),
        (deep(MAX_DEPTH), "nested too deep"),
        (deep(100_000), "nested too deep"),
    ],
)
def test_a_python_value_is_held_to_the_same_rules(value, said):
    with pytest.raises(RequestError, match=said):
        document_of(value)


def test_tuples_are_arrays():
    assert {"a": [1, [2]]} == document_of({"a": (1, (2,))})
