"""CSV with blanks after its delimiters is recognised if every row of the head has them; else the reject says why."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.embedded.run import run_locally
from nddup.reading.containers import container_head, read_container
from nddup.reading.csv_rows import separator_of
from nddup.reading.outcomes import Record, Reject
from nddup.settings.load import build_config


def read(data: bytes, head_bytes: int = 5_000) -> list[Record | Reject]:
    """Return the records of a table."""
    head = container_head(data[:head_bytes], "a.csv", None, {})
    assert head is not None
    raw = io.BytesIO(data)
    return list(read_container(raw, head, source="a.csv", compression="", limit=None, max_record=1 << 20))


VALUES = st.text(st.sampled_from('ab ",;\n'), max_size=6)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=5), st.integers(1, 80))
def test_as_python_reads_them(rows: list[tuple[str, str]], head_bytes: int) -> None:
    """Quoted values with a blank before each are read as by Python, wherever in them the head ends."""
    quoted = [[f'"{value.replace(chr(34), chr(34) * 2)}"' for value in row] for row in rows]
    text = "id, text\n" + "".join(", ".join(row) + "\n" for row in quoted)

    found = read(text.encode(), len("id, text\n") + len(", ".join(quoted[0])) + head_bytes)

    due = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))[1:]
    assert [((one.doc_id or "").split(), *one.fields) for one in found if isinstance(one, Record)] == [
        (doc_id.split(), content) for doc_id, content in due
    ]


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ('id,text\n1, "a, b"\n2, c\n', ", "),  # values without quotes as well; a header without blanks
        ('id, text\r\n1,   "a\r\nb"\r\n', ", "),  # several blanks; a line end in a value
        ('id, text\n1, "a, b\nstill o', ", "),  # the head ends within a value
        ("id, text\n1, a\n", ","),  # no quotes: the blank does no harm
        ('id,text\n1, "a, b"\n2,"c"\n', ","),  # one row without a blank
        ('id,text\n1, "a" or b\n', ","),  # a quoted word within a text
        ('id,text\n1,"a, ""b"""\n', ","),  # the blank stands within a value
        ('id,text\n1, "a"\n\n2, b"c\n', ","),  # a stray quote
    ],
)
def test_what_separates_the_fields(text: str, separator: str) -> None:
    """The separator is the delimiter, with a blank if every row has one."""
    assert separator_of(text, ",") == separator


def test_a_reject_names_the_cause() -> None:
    """If some rows have the blank and others do not, the reject says so."""
    wide, open_ended = read(b'id,text\n1, "a, b"\n2,"c"\n'), read(b'id,text\n1,a\n2, "c" d,"e\n')

    why = "; a quote after a blank does not open a quoted value"
    assert [one.detail for one in wide if isinstance(one, Reject)] == [f"3 fields, expected 2{why}"]
    assert [one.detail for one in open_ended if isinstance(one, Reject)] == [
        f"a quote is not closed, or closed inside a field{why}"
    ]


def test_such_a_table_is_tagged_to_the_byte(tmp_path: Path) -> None:
    """In kept and tagged tables the rows stay as they were; new cells are appended."""
    rows = ['1, "one two, three"', '2, "one two, three"', '3, "four, five ""six"""']
    (tmp_path / "a.csv").write_text("\n".join(["id, text", *rows, ""]), encoding="utf-8")
    settings = {"shingle": {"length": 1}, "output": {"report": False, "kept": "as-input", "tagged": "as-input"}}

    run_locally([str(tmp_path / "a.csv")], str(tmp_path / "out"), build_config(settings, origin="test"))

    kept = (tmp_path / "out/kept/a.csv").read_text(encoding="utf-8").splitlines()
    tagged = (tmp_path / "out/tagged/a.csv").read_text(encoding="utf-8").splitlines()
    assert kept == ["id, text", rows[0], rows[2]]
    assert [line.startswith(row) for line, row in zip(tagged, ["id, text", *rows], strict=True)] == [True] * 4
    assert [line.count(",") for line in tagged] == [5, 6, 6, 6]
