"""Chats are texts: the turns of JSON lines and of Parquet, and what of them is left unread."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.reading.chats import left_of, texts_of, with_texts
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, FormatError
from nddup.reading.outcomes import Record, Reject
from nddup.reading.parquet_rows import read_parquet
from nddup.reading.records import content_fingerprint, find_literals, parse_record, record_text

PARQUET = FileHead(format=FORMATS["parquet"], encoding="utf-8", separator=b"")
PICTURE = {"type": "image_url", "image_url": {"url": "data:…"}}
PARTS = [{"type": "text", "text": "in parts"}, PICTURE, {"type": "text", "text": "two"}]
CHATS = [
    ([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}], "one\ntwo", 0),
    ([{"from": "human", "value": "one"}, {"from": "gpt", "value": "two"}], "one\ntwo", 0),
    ([{"role": "user", "content": PARTS}, {"role": "assistant", "content": []}], "in parts\ntwo", 1),
    ([{"role": "a", "content": None, "tool_calls": [{"name": "f"}]}, {"role": "tool", "content": "one"}], "one", 1),
    ([{"role": "user", "name": "Ada", "content": "one"}], "one", 0),
    ([{"type": "title", "content": "one"}, {"type": "html", "mime": "text/plain", "content": "two"}], "one\ntwo", 0),
    ([{"type": "message", "id": 1, "text": "one"}, {"type": "x", "text": "two", "audio": "…"}], "one\ntwo", 1),
    ([{"role": "a", "tool_calls": [{"name": "f"}]}, {"role": "tool", "content": "one"}], "one", 1),
    ([{"role": "a", "reasoning_content": "so", "content": "one"}, {"role": "a", "refusal": "no", "content": None}],
     "one", 2),
]  # fmt: skip

MESSAGE = ["see ", {"type": "link", "text": "here"}, " and ", {"type": "bold", "text": "there"}]


def of_json(row: dict[str, object]) -> Record | Reject | None:
    line = json.dumps(row).encode()
    return parse_record(line, read_head(line), is_last=False)


def of_parquet(column: pa.Array, name: str = "messages", max_record: int = 1 << 20) -> list[Record | Reject]:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [str(at) for at in range(len(column))], name: column}), file)
    return list(read_parquet(file, PARQUET, limit=None, max_record=max_record))


@pytest.mark.parametrize(("chat", "text", "parts"), CHATS)
def test_the_turns_of_a_chat_are_its_text(chat: list[dict[str, object]], text: str, parts: int) -> None:
    """Who speaks is not part of it; what is no text is counted, and told apart by the fingerprint of the content."""
    found = of_json({"id": 1, "messages": chat})

    assert isinstance(found, Record)
    assert record_text(found) == text
    assert (found.unread.parts, found.unread.size > 0, bool(found.unread.digest)) == (parts, parts > 0, parts > 0)


def test_parts_of_a_message_that_are_marked_are_text() -> None:
    """As of Telegram, where only what is marked is an object."""
    found = of_json({"id": 1, "text": MESSAGE})
    assert isinstance(found, Record)
    assert (record_text(found).split(), found.unread.parts) == (["see", "here", "and", "there"], 0)


def test_another_picture_is_another_content() -> None:
    """Records of equal text that differ in a part that is not read have different digests of it."""
    turns = [[{"role": "user", "content": ["one", PICTURE | {"at": at}]}] for at in (1, 1, 2)]
    first, same, other = (of_json({"messages": turn}) for turn in turns)

    assert isinstance(first, Record)
    assert isinstance(same, Record)
    assert isinstance(other, Record)
    assert first.unread == same.unread != other.unread


TREE = {"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": "one"}]}]}


@pytest.mark.parametrize("body", [[{"text": "one"}], ["one", {"text": "two"}], [["one"]], [TREE]])
def test_what_is_no_text_and_no_turn_is_counted(body: object) -> None:
    """Objects where a text is expected are left unread: two papers of one title with other bodies are not one."""
    found, other = (of_json({"id": "1", "title": "A", "text": text}) for text in (body, [{"text": "three"}]))

    assert isinstance(found, Record)
    assert isinstance(other, Record)
    assert found.unread.parts == other.unread.parts == 1
    assert (texts_of(TREE), left_of(TREE)) == ([], TREE["content"])
    assert content_fingerprint(found) != content_fingerprint(other)


def test_parquet_is_read_as_json_lines() -> None:
    """Columns of lists of turns, with parts or without, and of lists of strings, in each type that Arrow gives them."""
    for chat, text, parts in CHATS:
        (found,) = of_parquet(pa.array([chat]))
        assert isinstance(found, Record)
        assert (record_text(found), found.unread.parts) == (text, parts)
    (wide,) = of_parquet(pa.array([CHATS[0][0]]).cast(
        pa.large_list(pa.struct({"content": pa.large_string(), "role": pa.string()}))), "conversations")  # fmt: skip
    (strings,) = of_parquet(pa.array([["one", None, "two"]]), "text")
    (null,) = of_parquet(pa.array([None], pa.list_(pa.struct({"role": pa.string(), "content": pa.string()}))))
    (numbers,) = of_parquet(pa.array([[1, 2]]), "text")

    assert isinstance(wide, Record)
    assert isinstance(strings, Record)
    assert record_text(wide) == record_text(strings) == "one\ntwo"
    assert isinstance(null, Reject)
    assert null.reason == "no content"
    assert isinstance(numbers, Reject)
    assert "which is not text" in numbers.detail


def test_a_row_of_many_long_turns_is_not_decoded() -> None:
    """A dictionary of one long value, taken by each turn of a row, would be a thousand times as long as its file."""
    turn = {"role": "user", "content": "long " * 20_000}
    (found,) = of_parquet(pa.array([[turn] * 300]), max_record=1 << 22)

    assert isinstance(found, Reject)
    assert found.reason == "too large"


@pytest.mark.parametrize(
    ("row", "content"),
    [
        ({"messages": CHATS[0][0], "description": "of it"}, ("messages",)),
        ({"messages": CHATS[0][0], "text": "the same", "title": "t"}, ("title", "text")),
        ({"messages": CHATS[0][0], "title": "t"}, ("title", "messages")),
        ({"messages": 12, "body": "a text"}, ("body",)),
        ({"messages": [{"id": 1}], "abstract": "a text"}, ("abstract",)),
    ],
)
def test_a_chat_is_chosen_by_what_it_holds(row: dict[str, object], content: tuple[str, ...]) -> None:
    """A text comes first, a chat before a description of it; a number of messages is no chat."""
    found = read_head(json.dumps(row).encode()).format.content

    assert found[-len(content) :] == content


def test_a_number_of_messages_is_no_text() -> None:
    """The keys are named, as where no key is a text."""
    with pytest.raises(FormatError, match=r"cannot tell which key .*seen: id, messages"):
        read_head(b'{"id": 1, "messages": 12}\n')


@pytest.mark.parametrize(
    "value", [*(chat for chat, _, _ in CHATS), MESSAGE, "one", ["one", "", {"text": "no turn"}, "two"]]
)
def test_texts_are_found_and_replaced_where_they_stand(value: object) -> None:
    """`find_literals` gives the places of the texts that are read, and `with_texts` replaces the same ones."""
    line = json.dumps({"id": 1, "x": value}, ensure_ascii=False)
    texts = [text for text in texts_of(value) if text]
    assert [json.loads(line[low:high]) for low, high in find_literals(line, ["x"])] == (texts or texts_of(value)[:1])

    assert with_texts(value, iter([None] * len(texts))) == value
    new = [f"new {text}" for text in texts]
    assert [text for text in texts_of(with_texts(value, iter(new))) if text] == new
