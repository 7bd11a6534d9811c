r"""Tables with doubled quotes, escaped quotes and without quoting: told by their first rows, or by the settings."""

import csv
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.embedded.run import run_locally
from nddup.errors import ConfigError
from nddup.reading.containers import container_head, read_container
from nddup.reading.csv_rows import HEADER, Dialect, find_dialect
from nddup.reading.outcomes import Record, Reject
from nddup.settings.load import build_config

ESCAPED, LITERAL, HIVE = Dialect(",", escape="\\"), Dialect("\t", ""), Dialect("\t", "", "\\")
VALUES = st.text(st.sampled_from('ab \\",;|\n'), max_size=8)


def read(data: str, name: str = "a.csv", **options: str) -> list[Record | Reject]:
    """Return the records of a table."""
    head = container_head(data.encode(), name, None, options)
    assert head is not None
    raw = io.BytesIO(data.encode())
    return list(read_container(raw, head, source=name, compression="", limit=None, max_record=1 << 20))


def texts(found: list[Record | Reject]) -> list[str]:
    """Return the text of each record; the reason of each reject in brackets."""
    return [f"[{one.reason}]" if isinstance(one, Reject) else str(one.fields[0]) for one in found]


def spark_cell(value: str) -> str:
    """Return a cell as Spark writes it by default: quoted if it holds a delimiter, a quote or a line end."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if set('",\n') & set(value) or not value else value


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_what_is_written_with_escapes_is_read_again(values: list[str]) -> None:
    """Values with quotes, escapes, delimiters and line ends come back from every way to write them."""
    data = "id,text\n" + "".join(f"{at},{spark_cell(value)}\n" for at, value in enumerate(values))
    assert texts(read(data, escape="\\")) == values

    data = "id,text\n" + "".join(ESCAPED.write([str(at), value]) + "\n" for at, value in enumerate(values))
    assert texts(read(data, escape="\\")) == values

    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows([["id", "text"], *enumerate(values)])
    assert texts(read(written.getvalue())) == values or "\\" in "".join(values)
    assert texts(read(written.getvalue(), quote='"', escape="")) == values

    written = io.StringIO(newline="")
    hive = csv.writer(written, delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\", lineterminator="\n")
    hive.writerows([["id", "text"], *enumerate(values)])
    assert texts(read(written.getvalue(), quote="", escape="\\")) == values


@given(st.lists(st.text(st.sampled_from('ab "'), min_size=1, max_size=6), min_size=1, max_size=9))
def test_quotes_in_tabs_lose_no_row(values: list[str]) -> None:
    """Whatever quotes the values between tabs have, no row swallows another."""
    found = read("id\ttext\n" + "".join(f"{at}\t{value}\n" for at, value in enumerate(values)), "a.tsv")

    assert len(found) == len(values)
    shown = [text.replace('"', "") for text in texts(found)]
    assert shown == [value.replace('"', "") for value in values]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('id\ttext\n1\t"a\n2\tb"\n3\tc\n', LITERAL),  # a quotation over two rows
        ('id\ttext\n1\t"a" said he\n2\t"b"\n', LITERAL),
        ("id\ttext\n1\ta\n", LITERAL),  # nothing shows it
        ('id\ttext\n1\t"a\tb"\n2\tc\n', Dialect("\t")),  # a tab in a value
        ('id\ttext\n1\t"a\nb"\n2\tc\n', Dialect("\t")),  # a line end in a value
        ('id\ttext\n1\t"a ""b"" c"\n2\tc\n', Dialect("\t")),  # doubled quotes
        ('"id"\t"text"\n"1"\t"a"\n', Dialect("\t")),  # all values of a column
        ('"id"\t"text"\n1\t"a\n2\tb"\n', Dialect("\t")),  # the names of all columns
        ("id\ttext\n1\ta\\\nb\n2\tc\\\td\n", HIVE),
        ('id|text\n1|"a\n2|b"\n', Dialect("|", "")),
        ('id,text\n1,"a\n2,b"\n', Dialect(",")),  # CSV is quoted in doubt
        ('id,text\n1,"a" said he\n2,b\n', Dialect(",", "")),
        ('id,text\n1,"a" said he\n2,"b, c"\n', Dialect(",")),  # a stray quote in a table with quoting
        ('id,text\n1,"a \\"b\\", c"\n', ESCAPED),
        ('id,text\n1,"a \\"b\\""\n2,"c ""d"""\n', ESCAPED),
        ('id,text\n1,"C:\\"\n2,"b, c"\n', Dialect(",")),  # a backslash that escapes nothing
        ('id,text\n1,"a ""b"", C:\\ d"\n', Dialect(",")),
        ('text\n"a\nb"\n', Dialect(",")),
        ('id,text\n1,"a, b\n', Dialect(",")),  # the head ends inside a row
    ],
)  # fmt: skip
def test_the_first_rows_tell_the_dialect(text: str, dialect: Dialect) -> None:
    """Each way to write rows is told from the others; where nothing tells, tabs have no quoting and commas do."""
    assert find_dialect(text, dialect.delimiter) == dialect


@given(st.lists(st.text(st.sampled_from("abNnt \\\",'|\t\r\n"), max_size=8), min_size=1, max_size=6))
def test_tables_of_databases_are_read_as_they_were_written(values: list[str]) -> None:
    r"""As PostgreSQL, MySQL and ClickHouse write them: `\N` is no value; `\n` is a line end, where a value is none."""
    values = [value for value in values if value != r"\N"]
    written = [value.translate({92: r"\\", 9: r"\t", 10: r"\n", 13: r"\r"}) for value in values]
    rows = [f"{number}\t\\N\t{value}\n" for number, value in enumerate(written)]

    found = read("id\ttitle\ttext\n" + "".join(rows) + "\\N\tt\t\\N\n", "a.tsv")

    assert texts(found) == [*values, "t"]
    assert [one.doc_id for one in found] == [*map(str, range(len(values))), None]
    others = r"C:\alpha\new"
    assert texts(read(f"id\ttext\n1\t{others}\n2\t\\N\n", "a.tsv")) == [others, ""]  # no backslashes of a database


@pytest.mark.parametrize("lines", ["# a\n", '#\r\n\r\n# of "May, 2024\r\n', '# x,"y" z\n', "\ufeff# a, b\n# id,text\n"])
def test_remarks_before_the_header_are_no_rows(tmp_path: Path, lines: str) -> None:
    """They stay where the table is written again; a header that begins with their sign is one."""
    data = f"{lines}id,text\n#1,one two three four five six\n2,one two three four five six\n"
    found = read(data)
    assert texts(found) == ["one two three four five six"] * 2
    assert [one.doc_id for one in found] == ["#1", "2"]
    assert texts(read("#id,text\n1,a\n# b,c\n")) == ["a", "c"]

    (tmp_path / "in.csv").write_bytes(data.encode())
    config = build_config({"output": {"report": False, "kept": "as-input"}}, origin="test")
    run_locally([str(tmp_path / "in.csv")], str(tmp_path / "out"), config)
    [kept] = (tmp_path / "out" / "kept").rglob("*.csv")
    assert kept.read_bytes().decode() == data[: data.index("2,one")].replace("\r\n\r\n", "\r\n")


@pytest.mark.parametrize("line", ["sep=^\r\n", '"sep=^"\r\n', "sep=^\n"])
def test_the_first_line_may_name_the_delimiter(tmp_path: Path, line: str) -> None:
    """As Excel reads and writes it: any delimiter is read, and the line stays where the table is written again."""
    data = f"{line}id^text\n1^one two three four five six, seven\n2^one two three four five six, seven\n"
    assert texts(read(data)) == ["one two three four five six, seven"] * 2
    assert texts(read("id,text\nsep=,a\n")) == ["a"]

    (tmp_path / "in.csv").write_bytes(data.encode())
    config = build_config({"output": {"report": False, "kept": "as-input", "tagged": "as-input"}}, origin="test")
    run_locally([str(tmp_path / "in.csv")], str(tmp_path / "out"), config)
    assert (tmp_path / "out" / "kept" / "in.csv").read_bytes().decode() == "".join(data.splitlines(keepends=True)[:3])
    tagged = (tmp_path / "out" / "tagged" / "in.csv").read_bytes().decode()
    assert tagged.startswith(f"{line}id^text^nddup_kept^")


def test_a_reject_names_the_setting() -> None:
    """A row that was written in another way than the first ones says how it can be read."""
    filler = "".join(f"{at},some text\n" for at in range(9))
    found = read("id,text\n" + filler + '10,"a \\"b\\", c"\n', escape="")
    assert [one.detail for one in found if isinstance(one, Reject)] == [
        "3 fields, expected 2; quotes after a backslash need input.escape=\\"
    ]

    found = read('id\ttext\n1\tb\n2\t"a\tb"\n', "a.tsv", quote="")
    assert [one.detail for one in found if isinstance(one, Reject)] == [
        '3 fields, expected 2; quoted values need input.quote="'
    ]


def test_the_settings_decide(tmp_path: Path) -> None:
    """A quote and an escape that are set are used, whatever the rows show; other values are refused."""
    (tmp_path / "a.csv").write_text("id,text\n1,'one, ^'two^''\n2,\"three\"\n", encoding="utf-8")
    settings = {"input": {"quote": "'", "escape": "^"}, "output": {"report": False}, "shingle": {"length": 1}}

    run_locally([str(tmp_path / "a.csv")], str(tmp_path / "out"), build_config(settings, origin="test"))

    assert pq.read_table(tmp_path / "out" / "documents")["n_tokens"].to_pylist() == [2, 1]
    assert pq.read_table(tmp_path / "out" / "rejects").num_rows == 0
    for wrong in ({"quote": "ab"}, {"escape": " "}, {"quote": "double"}):
        with pytest.raises(ConfigError, match="one character"):
            build_config({"input": wrong}, origin="test")


@pytest.mark.parametrize(
    ("name", "rows", "cells"),
    [
        ("a.csv", ['1,"one \\"two\\", three"', '2,"one \\"two\\", three"', '3,"four\\\\, ""five"""'], ",true,,,1"),
        ("a.tsv", ['1\t"one two three', '2\t"one two three', '3\tfour" five'], "\ttrue\t\t\t1"),
    ],
)
def test_such_a_table_is_written_again_to_the_byte(tmp_path: Path, name: str, rows: list[str], cells: str) -> None:
    """In kept and tagged tables the rows stay as they were; new cells are appended."""
    delimiter = cells[0]
    data = "\n".join([f"id{delimiter}text", *rows, ""])
    (tmp_path / name).write_text(data, encoding="utf-8")
    settings = {"shingle": {"length": 1}, "output": {"report": False, "kept": "as-input", "tagged": "as-input"}}

    run_locally([str(tmp_path / name)], str(tmp_path / "out"), build_config(settings, origin="test"))

    kept = (tmp_path / "out/kept" / name).read_text(encoding="utf-8").splitlines()
    tagged = (tmp_path / "out/tagged" / name).read_text(encoding="utf-8").splitlines()
    assert kept == [f"id{delimiter}text", rows[0], rows[2]]
    assert [line.startswith(row) for line, row in zip(tagged[1:], rows, strict=True)] == [True] * 3
    assert tagged[3] == rows[2] + cells


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_joined_tables_name_their_columns_again(tmp_path: Path, mark: str) -> None:
    """The header of an appended table is no document but a reject; a value of an only column may be its name."""
    again = f'{mark}"id",text\r\n'
    data = f"id,text\n1,one\n{again}2,two\n3,text\nid,text\n4,text\n"
    assert texts(read(data)) == ["one", f"[{HEADER}]", "two", "text", f"[{HEADER}]", "text"]
    assert texts(read("text\na\ntext\n")) == ["a", "text"]

    (tmp_path / "in.csv").write_bytes(data.encode())
    settings = {"shingle": {"length": 1}, "input": {"max_rejects": 0.0}}
    settings["output"] = {"report": False, "kept": "as-input", "tagged": "as-input"}
    run_locally([str(tmp_path / "in.csv")], str(tmp_path / "out"), build_config(settings, origin="test"))
    assert (tmp_path / "out" / "kept" / "in.csv").read_text() == "id,text\n1,one\n2,two\n3,text\n"
    assert pq.read_table(tmp_path / "out" / "rejects")["record"].to_pylist() == [2, 5]
    tagged = (tmp_path / "out" / "tagged" / "in.csv").read_bytes().decode()
    assert len(texts(read(tagged))) == len(texts(read(data)))


CUT = {
    "a lone return": ("id,text\n1,one\rtwo\n2,three\n", ["one\rtwo", "three"]),
    "in the first column": ("text,id\none\rtwo,1\nthree,2\n", ["one\rtwo", "three"]),
    "at the end of the file": ("id,text\n1,one\r\rtwo", ["one\r\rtwo"]),
    "beside a quoted value": ('id,text,a\n1,one\rtwo,"x,\ry"\n2,three,\n', ["one\rtwo", "three"]),
    "a lone feed": ("id,text\r\n1,one\ntwo\r\n2,three\r\n", ["one\ntwo", "three"]),
    "of tabs": ('id\ttext\n1\tone "\rtwo\n2\tthree\n', ['one "\rtwo', "three"]),
    "rows of another system": ("id,text\n1,one\r2,two\r3,three\r", ["one", "two", "three"]),
    "rows of both": ("id,text\r\n1,one\n2,two\n3,three\r\n", ["one", "two", "three"]),
    "a return too many": ("text,id\none,1\r\r\ntwo,2\r\r\n", ["one", "two"]),
    "one column": ("text\none\rtwo\nthree\n", ["one", "two", "three"]),
    "returns alone": ("id,text\r1,one\r2,two\r", ["one", "two"]),
}


@pytest.mark.parametrize("name", CUT)
def test_a_line_end_of_another_kind_cuts_no_row(name: str) -> None:
    """It is part of a value where only that gives the row its fields, else a line end, as it was."""
    data, expected = CUT[name]
    found = read(data, "a.tsv" if "\t" in data else "a.csv")

    assert texts(found) == expected


def test_many_such_line_ends_cost_no_more_than_the_rows() -> None:
    """What is no row as a whole is read by its parts, once."""
    parts = "".join(f"{at},text {at}\r" for at in range(5_000)) + "x\r" * 5_000 + "1,2,3\n"
    found = read("id,text\n" + parts + "7,end\n")

    assert texts(found) == [*(f"text {at}" for at in range(5_000)), *["[malformed]"] * 5_001, "end"]
