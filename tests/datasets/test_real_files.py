"""What spreadsheets, pandas, polars and shells really write: read as it was meant, or refused with the way out."""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import io
import json
import os
import threading
import unicodedata

import polars as pl
import pytest

from openjev_core import RequestError
from openjev_core.datasets.exports import check_export, export
from openjev_core.datasets.rows import Columns, read_rows
from openjev_core.errors import SettingsError, StartupError

QUESTIONS = {"urgent": {"type": "noul", "instructions": "Urgent?"}}
TEAM = {"type": "choice", "criteria": {"billing": "Payments", "sales": None}}
KIND = {"type": "choice", "criteria": {"bug": "It breaks", "feature": "A wish"}}


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to


@pytest.fixture
def parquet(tmp_path):
    def of(rows):
        """As polars writes JSON lines that it has read."""
        path = tmp_path / "data.parquet"
        pl.read_ndjson(io.StringIO("".join(json.dumps(row) + "\n" for row in rows))).write_parquet(path)
        return path

    return of


def states(path, **columns):
    return [row.state for row in read_rows(path, Columns(**{"questions": QUESTIONS, **columns}))]


def refusal(path, error=RequestError, **columns):
    with pytest.raises(error) as refused:
        states(path, **columns)
    return str(refused.value).replace(f"{path.parent}/", "")


def test_structs_whose_rows_differ_are_refused_with_the_field_and_the_way_out(parquet):
    """polars gives every row the fields of all: the options of other rows would be options of this one."""
    path = parquet([{"state": "a", "questions": {"q": TEAM}}, {"state": "b", "questions": {"q": KIND}}])

    said = refusal(path, questions=None)

    assert "data.parquet row 1: questions.q.criteria.sales: is null, and a Parquet file fills the fields" in said
    assert "store the column as JSON text" in said


@pytest.mark.parametrize(
    "state",
    [
        [{"order": {"id": 1}}, {"order": {"note": "late"}}],
        [[{"role": "user", "content": "a"}], [{"role": "assistant", "content": "b", "tool_calls": []}]],
        [{"order": {"id": 1, "note": None}}],
    ],
)
def test_a_null_in_a_state_s_struct_may_be_a_field_that_is_not_there(parquet, state):
    assert "is null, and a Parquet file fills the fields" in refusal(parquet([{"state": one} for one in state]))


def test_structs_with_the_same_fields_everywhere_are_read(parquet):
    rows = [{"state": {"id": 1, "tags": ["a"]}}, {"state": {"id": 2, "tags": []}}]

    assert [row["state"] for row in rows] == states(parquet(rows))


def test_json_text_in_a_column_is_what_it_says(parquet):
    chats = [[{"role": "user", "content": "a"}], {"messages": [{"role": "user", "content": "b", "name": None}]}]
    path = parquet(
        [{"state": json.dumps(c), "questions": json.dumps({"q": q})} for c, q in zip(chats, (TEAM, KIND), strict=True)]
    )

    rows = read_rows(path, Columns(json_state=True))

    assert chats == [row.state for row in rows]
    assert [{"q": TEAM}, {"q": KIND}] == [row.questions for row in rows]


def test_text_that_is_no_json_is_refused_where_json_is_said(write):
    said = refusal(write("data.csv", "state\nhello\n"), json_state=True)

    assert "data.csv line 2: state: the text is not JSON" in said


CHAT = json.dumps([{"role": "user", "content": "Refund me!"}])


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl"])
def test_states_that_are_all_json_text_want_a_word_on_how_to_read_them(write, name):
    def holding(*texts):
        if name == "data.jsonl":
            return write(name, "".join(json.dumps({"state": text}) + "\n" for text in texts))
        rows = io.StringIO()
        csv.writer(rows).writerows([["state"], *([text] for text in texts)])
        return write(name, rows.getvalue())

    said = refusal(holding(CHAT, ' {"a": 1}'))

    assert f"{name}: every state is JSON text; say with --state-json that it is to be read as JSON" in said
    assert [json.loads(CHAT), {"a": 1}] == states(holding(CHAT, ' {"a": 1}'), json_state=True)
    assert [CHAT, '{"a": 1}'] == states(holding(CHAT, '{"a": 1}'), json_state=False)
    assert [CHAT, "Refund me!"] == states(holding(CHAT, "Refund me!"))
    assert ["[sic]"] == states(holding("[sic]"))
    assert ["7"] == states(holding("7"))


PYTHON_TEXTS = [
    "[{'role': 'user', 'content': 'Refund me!'}]",
    "[{'role': 'user', 'content': 'a'}\n {'role': 'assistant', 'content': \"It's b\"}]",
    "{'order': 7}",
    "['a' 'b']",
]


def test_states_that_python_wrote_want_a_word_on_how_to_read_them(tmp_path, write):
    """pandas writes lists and dicts into CSV as Python shows them; arrays without the commas."""
    path = tmp_path / "data.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["state"], *([text] for text in PYTHON_TEXTS)])

    said = refusal(path)

    assert "data.csv: every state is a list or dict as Python writes it, which is what pandas puts into CSV;" in said
    assert "write the column with json.dumps and say --state-json" in said
    assert PYTHON_TEXTS == states(path, json_state=False)
    assert ["['sic'] they said", "{'order': 7}"] == states(write("b.csv", "state\n['sic'] they said\n{'order': 7}\n"))


def test_quotes_behind_a_space_want_a_word_on_what_they_are(write):
    path = write("data.csv", 'id, state\n1, "Refund me!"\n2, "Now."\n')

    assert "every state is a text in quotes behind a space, where CSV takes the quotes for a part" in refusal(path)
    assert [' "Refund me!"', ' "Now."'] == states(path, json_state=False)
    assert [' "Refund me!"', " Now."] == states(write("b.csv", 'id, state\n1, "Refund me!"\n2, Now.\n'))


@pytest.mark.parametrize("error", ["#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!"])
def test_a_spreadsheet_s_error_is_no_state(write, error):
    said = refusal(write("data.csv", f"state\na\n{error}\n"))
    parts = refusal(write("two.csv", f"subject,body\na,{error}\n"), state=("subject", "body"))

    assert f"data.csv line 3: the state holds the spreadsheet's error {error}, and no text; mend the formula" in said
    assert f"two.csv line 2: the state holds the spreadsheet's error {error}" in parts
    assert ["N/A", "none", "nan"] == states(write("c.csv", "state\nN/A\nnone\nnan\n"))


def test_a_cell_that_excel_has_cut_is_no_state(write):
    """A cell keeps 32,767 characters, and nothing tells that there were more."""
    cut, more, fewer = ("x" * length for length in (32_767, 32_768, 32_766))

    said = refusal(write("data.csv", f"state\na\n{cut}\n"))

    assert "data.csv line 3: the state holds exactly 32,767 characters, where Excel cuts a cell without a word" in said
    assert [more, fewer] == states(write("b.csv", f"state\n{more}\n{fewer}\n"))
    assert [cut] == states(write("c.jsonl", json.dumps({"state": cut})))


def test_a_column_s_name_shows_what_nobody_sees_in_it(write):
    said = refusal(write("data.csv", "id,\u200bstate\n1,a\n"))

    assert "has no column 'state'; it has: id, '\\u200bstate'." in said


def test_files_that_were_joined_with_their_marks_name_the_line(write):
    """``type a.jsonl b.jsonl``, each with the byte order mark that Windows gave it."""
    said = refusal(write("data.jsonl", b'\xef\xbb\xbf{"state": "a"}\n\xef\xbb\xbf{"state": "b"}\n'))

    assert "data.jsonl line 2: expected one whole JSON object in each line (`jq -c` writes them so): the line" in said
    assert "starts with a byte order mark" in said


def test_rows_without_a_state_are_named(write):
    said = refusal(write("data.csv", 'state,n\na,1\n,2\n"  ",3\n'))

    assert (
        "data.csv line 3: the state is blank, and an answer about nothing looks like any other; remove the row\n"
        "data.csv line 4: the state is blank, and an answer about nothing looks like any other; remove the row"
    ) == said.replace("; data.csv", "\ndata.csv")
    assert "data.jsonl line 1: the state is blank" in refusal(write("data.jsonl", '{"state": ""}\n'))
    assert "one.csv line 3: the state is blank" in refusal(write("one.csv", 'state\na\n""\n\n'))
    both = write("two.csv", "subject,body\n,Hello\n, \n")
    assert "two.csv line 3: the state is blank" in refusal(both, state=("subject", "body"))


def test_options_that_a_columnar_program_filled_in_are_no_options(tmp_path):
    """The same rows as in Parquet, written as JSON lines by polars."""
    rows = [{"state": "a", "questions": {"q": TEAM}}, {"state": "b", "questions": {"q": KIND}}]
    path = tmp_path / "data.jsonl"
    pl.read_ndjson(io.StringIO("".join(json.dumps(row) + "\n" for row in rows))).write_ndjson(path)

    said = refusal(path, questions=None)

    assert "data.jsonl line 1: questions.q.criteria.bug: is null here and not in other rows" in said
    assert "or write its questions as JSON text" in said


@pytest.mark.parametrize(
    "criteria",
    [
        [{"billing": "Payments", "sales": None}, {"billing": "Payments", "sales": None}],
        [{"billing": "Payments", "sales": None}, {"sales": "Offers"}],
        [{"billing": None, "sales": None}, {"bug": None, "feature": None}],
    ],
)
def test_options_whose_names_speak_for_themselves_are_read(write, criteria):
    questions = [{"q": {"type": "choice", "criteria": one}} for one in criteria]
    path = write("data.jsonl", "".join(json.dumps({"state": "a", "questions": one}) + "\n" for one in questions))

    assert questions == [row.questions for row in read_rows(path, Columns())]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_label_is_null_or_nan(tmp_path, missing):
    path = tmp_path / "data.parquet"
    pl.DataFrame({"state": ["a", "b"], "truth": [1.0, missing], "more": [{"urgent": None}] * 2}).write_parquet(path)

    first, second = read_rows(path, Columns(labels={"urgent": "truth"}, questions=QUESTIONS))

    assert ({"urgent": 1.0}, {}) == (first.labels, second.labels)


def test_columns_that_nobody_reads_may_hold_anything(tmp_path):
    path = tmp_path / "data.parquet"
    pl.DataFrame(
        {
            "state": ["a"],
            "scan": [b"\x00\xff"],
            "weight": [float("inf")],
            "seen": [float("nan")],
            "took": [dt.timedelta(seconds=90)],
            "meta": [{"a": None}],
        }
    ).write_parquet(path)
    (row,) = read_rows(path, Columns(questions=QUESTIONS))

    expected = {"scan": "AP8=", "weight": "inf", "seen": None, "took": "0:01:30", "meta": {"a": None}}
    assert {"state": "a", **expected} == row.fields
    out = tmp_path / "out.jsonl"
    export(out, [row], {1: {"answers": {"urgent": {"type": "noul", "noul": 0.5}}}}, escape_formulas=False)
    assert {"state": "a", **expected, "urgent.noul": 0.5} == json.loads(out.read_text())


def test_binary_in_a_column_that_is_read_is_refused(tmp_path):
    path = tmp_path / "data.parquet"
    pl.DataFrame({"state": [b"\x00\xff"]}).write_parquet(path)

    assert "data.parquet row 1: state: holds b'\\x00\\xff', which JSON does not have" in refusal(path)


TEXTS = ["Say, please", 'It "broke"; twice']


@pytest.mark.parametrize(
    "content",
    [
        'id;state\n1;Say, please\n2;"It ""broke""; twice"\n',
        '"id";"state"\r\n"1";"Say, please"\r\n"2";"It ""broke""; twice"\r\n',
        'sep=;\r\nid;state\r\n1;Say, please\r\n2;"It ""broke""; twice"\r\n',
        '\ufeff"sep=;"\nid;state\n1;Say, please\n2;"It ""broke""; twice"\n',
        'id\tstate\n1\tSay, please\n2\t"It ""broke""; twice"\n',
        'id|state\n1|Say, please\n2|"It ""broke""; twice"\n',
        'sep=|\nid|state\n1|Say, please\n2|"It ""broke""; twice"\n',
        'id,state,,\n1,"Say, please",,\n2,"It ""broke""; twice",,\n,,,\n',
        'id,state\n1,"Say, please",,\n2,"It ""broke""; twice"\n',
        ',id,state\n0,1,"Say, please"\n1,2,"It ""broke""; twice"\n',
        'id,state,\n1,"Say, please"\n2,"It ""broke""; twice"\n',
        ' id, state\n1,"Say, please"\n2,"It ""broke""; twice"\n',
        'id,state\r1,"Say, please"\r2,"It ""broke""; twice"\r',
    ],
)
def test_spreadsheets_are_read(write, content):
    rows = read_rows(write("data.csv", content), Columns(questions=QUESTIONS))

    assert TEXTS == [row.state for row in rows]
    assert ["1", "2"] == [row.id for row in rows]


def test_line_numbers_count_the_separator_line(write):
    assert "data.csv line 3: expected 2 columns" in refusal(write("data.csv", "sep=;\nid;state\n1\n"))


def test_a_flag_says_the_delimiter(write):
    path = write("data.csv", "state;a,b\nhello;1\n")

    assert "cells are separated by ',', and --delimiter names another character" in refusal(path)
    assert ["hello"] == states(path, delimiter=";")


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-8", codecs.BOM_UTF8),
    ],
)
def test_a_byte_order_mark_says_the_encoding(write, encoding, mark):
    """Excel's "Unicode text", and what PowerShell writes."""
    table = mark + "id\tstate\r\n1\tGrüße\r\n".encode(encoding)
    line = mark + '{"state": "Grüße"}\r\n'.encode(encoding)

    assert ["Grüße"] == states(write("data.csv", table))
    assert ["Grüße"] == states(write("data.jsonl", line))


def test_other_encodings_name_the_flag_that_reads_them(write):
    windows = write("data.csv", "state\nGrüße\n".encode("cp1252"))
    unmarked = write("more.csv", "state\nGrüße\n".encode("utf-16-le"))

    assert "data.csv: is not valid UTF-8: invalid start byte at byte 8" in refusal(windows)
    assert "gb18030 in Chinese, cp932 in Japanese, cp949 in Korean; --encoding cp1252 reads the first" in refusal(
        windows
    )
    assert ["Grüße"] == states(windows, encoding="cp1252")
    assert ["Grüße"] == states(unmarked, encoding="utf-16-le")
    assert "--encoding klingon: unknown; expected a name" in refusal(windows, SettingsError, encoding="klingon")
    assert "data.csv: is not valid ascii: ordinal not in range" in refusal(windows, encoding="ascii")


@pytest.mark.parametrize(("name", "content"), [("data.csv", "state\nhello\n"), ("data.jsonl", '{"state": "hello"}\n')])
def test_utf_16_without_a_mark_is_recognised(write, name, content):
    path = write(name, content.encode("utf-16-le"))

    assert f"{name}: holds NUL characters, as UTF-16 does; --encoding utf-16-le or utf-16-be reads that" == refusal(
        path
    )
    assert ["hello"] == states(path, encoding="utf-16-le")


def test_json_lines_in_another_encoding_name_the_flag_too(write):
    path = write("data.jsonl", '{"state": "Grüße"}\n'.encode("cp1252"))

    assert "data.jsonl: is not valid UTF-8: invalid start byte at byte 13. Programs on Windows" in refusal(path)
    assert ["Grüße"] == states(path, encoding="cp1252")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "data.csv",
            b"PK\x03\x04\x14\x00\xff",
            "is a zip archive, as .xlsx workbooks are; save the sheet as CSV UTF-8",
        ),
        (
            "data.xlsx",
            b"PK\x03\x04\x14\x00\xff",
            "is a zip archive, as .xlsx workbooks are; save the sheet as CSV UTF-8",
        ),
        ("data.csv", b"\xd0\xcf\x11\xe0\xa1\xb1", "is an .xls workbook; save the sheet as CSV UTF-8"),
        ("data.jsonl.gz", b"\x1f\x8b\x08\x00", "is compressed with gzip; `gunzip` unpacks it"),
        ("data.jsonl", b"\x1f\x8b\x08\x00", "is compressed with gzip; `gunzip` unpacks it"),
        ("data.csv", b"PAR1\x15\x04", "is a Parquet file; name it .parquet"),
        ("data.csv", b"%PDF-1.7\n", "is a PDF; its text has to be put into rows first"),
        (
            "data.csv",
            b"\xef\xbb\xbf<!DOCTYPE html>\n",
            "is a web page, as a download without a login gives; open it in a",
        ),
        (
            "data.jsonl",
            b"<html><body>Sign in</body>",
            "is a web page, as a download without a login gives; open it in a",
        ),
        *(
            (
                name,
                b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
                "is a pointer of Git LFS to the file; `git lfs pull` fetches it",
            )
            for name in ("data.csv", "data.jsonl", "data.parquet")
        ),
        (
            "data.json",
            b"[]",
            "a file of rows ends in one of .jsonl, .ndjson, .csv, .tsv, .parquet; `jq -c '.[]'` makes",
        ),
        ("data.txt", b"a", "a file of rows ends in one of .jsonl, .ndjson, .csv, .tsv, .parquet"),
    ],
)
def test_a_file_that_holds_something_else_than_its_name_says_is_named(write, name, content, said):
    assert refusal(write(name, content)).startswith(f"{name}: {said}")


def test_rows_are_read_from_a_pipe(tmp_path):
    path = tmp_path / "data.jsonl"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text('{"state": "a"}\n'))
    writer.start()
    found = states(path)
    writer.join()

    assert ["a"] == found


def test_a_cell_without_a_header_is_named(write):
    assert "data.csv line 2: column 2 holds 'x' and has no name in the header" in refusal(
        write("data.csv", "id,,state\n1,x,a\n")
    )
    assert "data.csv line 2: expected 2 columns as in the header, found 3" in refusal(
        write("data.csv", "id,state,\n1,a,x\n")
    )


def test_files_that_were_joined_are_no_rows_of_headers(write):
    """``cat a.csv b.csv``: the second header would be asked about as a state."""
    said = refusal(write("data.csv", "id,state\n1,a\nid,state\n2,b\n"))

    assert "data.csv line 3: repeats the header; is this several files in one?" == said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[{"state": "a"}, {"state": "b"}]', "`jq -c '.[]'` makes them of an array"),
        ('[{"state": "a"},\n{"state": "b"}]', "(`jq -c` writes them so): the line is not JSON"),
        ('{\n  "state": "a"\n}\n', "(`jq -c` writes them so): the line is not JSON"),
        ('{"state": "a"}{"state": "b"}\n', "(`jq -c` writes them so): the line is not JSON: Extra data"),
    ],
)
def test_json_that_is_no_lines_names_what_makes_lines(write, content, said):
    assert said in refusal(write("data.jsonl", content))


def test_a_separator_of_unicode_ends_no_line(write):
    content = '{"state": "a\u2028b\x85c\x0cd"}\n'.replace("\x0c", "\\f")

    assert ["a\u2028b\x85c\x0cd"] == states(write("data.jsonl", content))


def test_backslashes_before_quotes_are_named(write):
    assert "is no CSV: ',' expected after '\"'; a quote inside a quoted cell is written twice" in refusal(
        write("data.csv", 'state,x\n"a\\"b",c\n')
    )


def test_categories_are_texts(tmp_path):
    path = tmp_path / "data.parquet"
    kinds = {"state": pl.Categorical, "truth": pl.Enum(["yes", "no"]), "id": pl.UInt64}
    pl.DataFrame({"state": ["a"], "truth": ["yes"], "id": [7]}, schema=kinds).write_parquet(path)

    (row,) = read_rows(path, Columns(labels={"urgent": "truth"}, questions=QUESTIONS))

    assert ("7", "a", {"urgent": "yes"}) == (row.id, row.state, row.labels)


def test_accents_are_the_same_however_they_are_written(write):
    """macOS and Windows write them differently; a person sees no difference."""
    cafe, apart = unicodedata.normalize("NFC", "Café"), unicodedata.normalize("NFD", "Café")
    path = write("data.csv", f"state,{apart}\na,x\n")

    (row,) = read_rows(path, Columns(labels={"urgent": cafe}, questions=QUESTIONS))

    assert {"urgent": "x"} == row.labels


@pytest.mark.parametrize("field", ["assets", "images", "audio", "videos"])
def test_media_beside_a_state_is_refused(write, field):
    row = {"state": "a", "questions": QUESTIONS, field: ["scan.png"]}

    said = refusal(write("data.jsonl", json.dumps(row)), questions=None)

    assert f"data.jsonl line 1: {field}: is not read from rows; this program reads text only" in said
    assert ["a"] == states(write("data.jsonl", json.dumps({**row, field: []})), questions=None)
    assert [["scan.png"]] == states(write("data.jsonl", json.dumps({field: ["scan.png"]})), state=(field,))


def test_orders_of_a_single_row_are_refused(write):
    row = {"state": "a", "questions": QUESTIONS, "x_orders": "full"}

    assert "x_orders: is not read from rows; give --orders" in refusal(
        write("data.jsonl", json.dumps(row)), questions=None
    )


FORMULAS = ['=HYPERLINK("http://a","b")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "-5", "-0.5e3", "a=b"]


@pytest.mark.parametrize(
    ("escape", "written"),
    [
        (False, FORMULAS),
        (True, ["'" + cell for cell in FORMULAS[:5]] + FORMULAS[5:]),
    ],
)
def test_formulas_are_exported_as_they_are_unless_a_flag_says_otherwise(write, tmp_path, escape, written):
    rows = read_rows(
        write("data.jsonl", "".join(json.dumps({"state": cell, "=x": 1.5}) + "\n" for cell in FORMULAS)),
        Columns(questions=QUESTIONS),
    )
    out = tmp_path / "out.csv"

    export(out, rows, {row.number: {"answers": {}} for row in rows}, escape_formulas=escape)

    header, *cells = csv.reader(out.open(encoding="utf-8", newline=""))
    assert ["state", "'=x" if escape else "=x"] == header
    assert [[cell, "1.5"] for cell in written] == cells


def test_an_export_without_a_folder_is_refused_before_anything_is_answered(tmp_path):
    with pytest.raises(StartupError, match=r"out\.csv: cannot be written: there is no folder"):
        check_export(tmp_path / "missing" / "out.csv")
