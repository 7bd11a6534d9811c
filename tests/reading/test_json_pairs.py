"""Files for Elasticsearch: an action and its document are one record; the same rows as JSON lines are the oracle."""

import io
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.scanning.whole_files import read_stream

ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(), "text": st.text(st.sampled_from('aé"\\{}[],: \n\ud800'), min_size=1).map("x".__add__)},
        optional={
            "index": st.dictionaries(st.sampled_from(["_id", "a"]), st.integers()),
            "doc": st.just({"text": "y"}),
        },
    ),
    min_size=1,
    max_size=6,
)


def records_of(data: bytes, head: FileHead) -> list[Record | Reject]:
    """Read a file of short records."""
    return [one for one, _ in read_stream(io.BytesIO(data), head, 1 << 20)]


@given(ROWS, st.sampled_from([b"\n", b"\r\n", b"\n\n"]), st.booleans(), st.randoms())
def test_pairs_are_read_as_lines_are(rows: list[dict[str, Any]], end: bytes, mark: bool, draw: random.Random) -> None:  # noqa: FBT001
    """Whatever the action, the line ends, blank lines, and fields of the document that look like an action."""
    lines, alone = [], []
    for number, row in enumerate(rows):
        name = draw.choice(("index", "create", "update"))
        action = {name: {"_index": "a", "_id": draw.choice((number, str(number)))}}
        lines += [json.dumps(action), json.dumps({"doc": row} if name == "update" else row)]
        alone.append(json.dumps({**row, "_id": str(number)}))
    data = b"\xef\xbb\xbf" * mark + end.join(line.encode() for line in lines) + end * draw.choice((0, 1))
    head = read_head(data)
    due = records_of("\n".join(alone).encode(), read_head("\n".join(alone).encode(), id="_id"))

    assert (head.is_paired, head.is_indivisible, head.format.id) == (True, True, "_id|id")
    assert [(one.doc_id, one.fields) for one in records_of(data, head) if isinstance(one, Record)] == [
        (one.doc_id, one.fields) for one in due if isinstance(one, Record)
    ]
    assert len(due) == len(rows)


@pytest.mark.parametrize(
    ("lines", "due"),
    [
        (['{"delete": {"_id": "d"}}'], ("deleted", "d")),
        (['{"index": {"_id": "d"}}'], ("no content", "d")),
        (['{"index": {"_id": "d"}}', ""], ("no content", "d")),
        (['{"index": {"_id": "d"}}', '{"n": 1}'], ("no content", "d")),
        (['{"index": {"_id": "d"}}', '{"n": '], ("malformed", None)),
        (['{"index": {"_id": "d"}}', "[]"], ("malformed", None)),
        (['{"index": {"_id": "d"}, "create": {}}'], ("no content", None)),
    ],
)
def test_what_has_no_document_is_one_reject(lines: list[str], due: tuple[str, str | None]) -> None:
    """At the end of a file or before other pairs."""
    pair = ['{"index": {}}', '{"text": "a", "id": 5}']
    is_closed = (len(lines) == 2 and lines[1] != "") or due[0] == "deleted"
    for whole in ([*pair, *lines], [*pair, *lines, *pair][: 6 if is_closed else 3]):
        data = "\n".join(whole).encode()
        rejects = [one for one in records_of(data, read_head(data)) if isinstance(one, Reject)]
        assert [(one.reason, one.doc_id) for one in rejects] == [due]


def test_objects_that_only_look_like_actions_are_records() -> None:
    """An object under such a key that holds a text is no action; nor is a query."""
    for line in ('{"index": {"text": "a"}}', '{"create": "a", "text": "b"}', '{"index": {"_id": 1}, "text": "b"}'):
        assert not read_head(f"{line}\n{line}\n".encode(), content="text").is_paired
