"""Lists of ids are read as programs and people write them."""

import csv
import io
import json

import pytest

from nddup.engines.duck import DuckEngine
from nddup.engines.engine import find_ids
from nddup.ground.shown import csv_line, one_line
from nddup.reading.id_lists import read_ids
from nddup.tables import DOCUMENTS
from tests.engine_rows import see_rows

IDS = ["@a", "+49 30 1", "b, c", 'say "d"', "7", "[e]"]
ROWS = [{"doc_id": doc_id, "reason": "near"} for doc_id in IDS]


def table(delimiter: str, end: str) -> str:
    made = io.StringIO()
    csv.writer(made, delimiter=delimiter, lineterminator=end).writerows(
        [["doc_id", "reason"], *([one, "x"] for one in IDS)]
    )
    return made.getvalue()


LISTS = {
    "lines": "\n".join(IDS),
    "old lines": "\r".join(IDS),
    "of show": "doc_id,reason\n" + "".join(f"{csv_line([one, 'x'])}\n" for one in IDS),
    "commas": table(",", "\r\n"),
    "semicolons": table(";", "\n"),
    "tabs": table("\t", "\n"),
    "objects": "\n".join(map(json.dumps, ROWS)),
    "array": json.dumps(ROWS),
    "array on lines": json.dumps(ROWS, indent=1),
    "array of ids": json.dumps(IDS),
    "array of ids on lines": json.dumps(IDS, indent=2),
}
"""What is read as IDS."""


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_ids_of_a_list(name: str, encoding: str) -> None:
    """In one of the readings, whatever divides, ends and quotes them."""
    assert IDS in read_ids(LISTS[name].encode(encoding))


def test_ids_in_braces() -> None:
    """As of COM and the registry of Windows; JSON is what its lines can be read as."""
    ids = ["{6b29fc40-ca47-1067-b31d-00dd010662da}", "{b}", "c"]

    assert ids in read_ids("\n".join(ids).encode())
    assert ids in read_ids("".join(f"{one},kept\n" for one in ids).encode())


def test_a_line_end_in_a_cell_is_a_blank() -> None:
    """As in an id that is read from a record."""
    assert read_ids(b'doc_id,reason\n"a\nb",x\n') == [["a b"]]


@pytest.mark.parametrize("data", [b'{"doc_id": "a"}\nb\n', b'[["a"]]', b'[{"key": "a"}]'])
def test_json_of_another_form_is_refused(data: bytes) -> None:
    """It says what was expected."""
    with pytest.raises(ValueError, match="expected a"):
        read_ids(data)


def test_a_message_id_may_stand_in_brackets() -> None:
    """A document is named with and without them; where ids have brackets of their own, these name it first."""
    engine = DuckEngine("test")
    see_rows(engine, DOCUMENTS, [{"doc_id": one} for one in ("1@a", "2@a", "<2@a>", "<>")])

    assert find_ids(engine, ["<1@a>", "1@a", "<2@a>", "<3@a>", "<>"]) == {
        "<1@a>": "1@a", "1@a": "1@a", "<2@a>": "<2@a>", "<>": "<>",
    }  # fmt: skip
    assert find_ids(engine, []) == {}
    assert read_ids(b"doc_id,why\n<1@a>,x\n2,y\n") == [["<1@a>", "2"], ["1@a", "2"]]


def test_an_id_is_named_as_the_collection_spells_it() -> None:
    """Line ends and blanks that no id of a record has are none in a list, or on a command line; nor is what is no text.

    A table may have ids with them: these name it first, and of two other spellings the first of `SPELLINGS` counts.
    """
    engine = DuckEngine("test")
    see_rows(
        engine, DOCUMENTS, [{"doc_id": one} for one in ("a b", "c\td", "c d", "1@a", "<1@a>x", "<2\n@a>", "2\n@a")]
    )

    assert find_ids(engine, ["a\tb", " a b\n", "\ufeffa b", "c\td", "c\nd", "<1@a>", "<2\n@a>", "\udcff", "?"]) == {
        "a\tb": "a b", " a b\n": "a b", "\ufeffa b": "a b", "c\td": "c\td", "c\nd": "c d", "<1@a>": "1@a",
        "<2\n@a>": "<2\n@a>",
    }  # fmt: skip


def test_an_id_is_named_as_it_is_printed() -> None:
    """Characters of direction are printed as escapes; where ids have backslashes of their own, these name it first."""
    engine, ids = DuckEngine("test"), ["\u202ba", "b\u200e", "c\\u200e", "c\u200e", "C:\\new"]
    see_rows(engine, DOCUMENTS, [{"doc_id": one} for one in ids])
    shown = list(map(one_line, ids[:2])) + ids[2:]

    assert find_ids(engine, shown) == dict(zip(shown, ids, strict=True))
    assert ids[:2] in read_ids(f"doc_id,why\n{shown[0]},x\n{shown[1]},y\n".encode())
