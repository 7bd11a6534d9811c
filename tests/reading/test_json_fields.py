"""Fields of JSON that are found by their names, and paths that lead through arrays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading.detect import read_head
from nddup.reading.formats import FormatError
from nddup.reading.outcomes import Record
from nddup.reading.records import find_literals, parse_record


def head_of(*rows: dict[str, Any], **settings: str) -> Any:  # noqa: ANN401
    """Return the head of lines."""
    return read_head("".join(json.dumps(row) + "\n" for row in rows).encode(), **settings)


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ([{"output": "a", "instruction": "b", "input": ""}], ["b|a"]),
        ([{"system_prompt": "", "question": "a", "response": "b"}], ["a|b"]),
        ([{"prompt": "a", "completion": "b"}] * 40 + [{"prompt": "a", "completion": "d", "context": "c"}], ["c|a|d"]),
        ([{"Question": "a", "Answer": "b", "title": "c"}], ["c|a|b"]),
        ([{"question": "a", "answer": "b", "text": "c"}], ["c"]),
        ([{"prompt": "a", "messages": [{"role": "user", "content": "c"}]}], ["c"]),
        ([{"context": "a", "question": "b", "answers": {"text": ["c"]}}], ["a|b"]),
    ],
)
def test_a_task_and_its_answer_are_the_text(rows: list[dict[str, Any]], texts: list[str]) -> None:
    """All that a line has of them, in the order in which they are read; not where a field is the text by its name."""
    record = parse_record(json.dumps(rows[-1]).encode(), head_of(*rows), is_last=False)

    assert isinstance(record, Record)
    assert ["|".join(map(str, record.fields))] == texts


@pytest.mark.parametrize("row", [{"question": "a", "n": 1}, {"question": "a", "answer": ""}])
def test_one_such_field_is_no_text(row: dict[str, Any]) -> None:
    """It may say anything."""
    with pytest.raises(FormatError, match="cannot tell which key holds the text"):
        head_of(row)


def test_what_names_a_paper_is_its_id_unless_records_share_it() -> None:
    """Records that share one are passages of a paper; where another field is an id by its name, that one is taken."""
    apart = [{"DOI": f"10.1/{at}", "text": "a"} for at in range(3)]
    assert head_of(*apart).format.id == "DOI"
    assert head_of(*apart, apart[0]).format.id is None
    assert head_of(*({**row, "id": at} for at, row in enumerate(apart))).format.id == "id"


def test_a_message_names_paths_and_not_every_word() -> None:
    """Keys of objects in arrays are named; those of an object with a key for each word are not."""
    words = {f"word{at}": [at] for at in range(99)}
    with pytest.raises(FormatError) as refused:
        head_of({"id": 1, "index": words, "paragraphs": [{"context": "a", "n": 1}], "tags": ["a"]})
    assert "(seen: id, index.…, paragraphs.context, paragraphs.n, tags)" in str(refused.value)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (
            {"fold1": [{"id": 1, "text": "a"}], "fold2": [{"id": 2, "text": "b"}]},
            "write the objects of fold1 one a line",
        ),
        ({"k1": {"text": "a"}, "k2": {"text": "b"}}, "its values may be records; write them one a line"),
        ({"id": {"0": "x", "1": "y"}, "text": {"0": "a", "1": "b"}}, "columns of a table; write an object a row"),
        ({"columns": ["id", "text"], "index": [0], "data": [["x", "a"]]}, "columns of a table; write an object a row"),
        ([["id", "text"], ["x", "a"]], "JSON without objects; write an object a line"),
        (["a", "b" * 99], "JSON without objects; write an object a line"),
        ("a", "JSON without objects; write an object a line"),
    ],
)
def test_a_collection_in_another_form_is_refused(value: Any, advice: str) -> None:  # noqa: ANN401
    """Of many records one text would be made; the message says what to do, also where the head ends inside the file."""
    data = json.dumps(value).encode()
    for start in (data, data[:50] if isinstance(value, list) else data):
        with pytest.raises(FormatError, match=advice):
            read_head(start)


VALUES = st.recursive(
    st.text('ab "\\', min_size=1, max_size=3) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=9,
)


def reached(value: Any, keys: list[str]) -> list[Any]:  # noqa: ANN401
    """Return the values of a path, one array at a time."""
    if not keys:
        return value if isinstance(value, list) else [value]
    inside = value if isinstance(value, list) else [value]
    objects = [one for one in inside if isinstance(one, dict) and keys[0] in one]
    return [found for one in objects for found in reached(one[keys[0]], keys[1:])]


@given(
    st.dictionaries(st.sampled_from("xy"), VALUES, min_size=1, max_size=2), st.sampled_from(["x.y", "x.x.y", "y.x.x"])
)
def test_a_path_leads_through_arrays(row: dict[str, Any], path: str) -> None:
    """The strings there are the fields, and stand in the line where `find_literals` says."""
    line = json.dumps(row)
    record = parse_record(line.encode(), head_of({"id": 1, "text": "a"}, content=path), is_last=False)
    due = [text for text in reached(row, path.split(".")) if isinstance(text, str)]

    assert (list(record.fields) if isinstance(record, Record) else []) == due
    if due:
        assert [json.loads(line[low:high]) for low, high in find_literals(line, [path])] == due


def test_paragraphs_with_their_sections_are_a_text() -> None:
    """As articles of CORD-19 have them."""
    body = [{"text": "one", "section": "A", "cite_spans": []}, {"text": "two", "section": "", "cite_spans": []}]
    row = {"paper_id": "p", "metadata": {"title": "t"}, "body_text": body}
    record = parse_record(json.dumps(row).encode(), head_of(row), is_last=False)

    assert isinstance(record, Record)
    assert (record.doc_id, record.fields) == ("p", ("one", "two"))
