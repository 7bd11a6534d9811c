"""Parquet: values of every type are exact text or a reject, and no damage ends the process."""

import io
import subprocess
import sys
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.reading.formats import FORMATS, FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.reading.parquet_rows import read_parquet

HEAD = FileHead(format=FORMATS["parquet"], encoding="utf-8", separator=b"")
FLIPS = """
import io, random
import pyarrow as pa, pyarrow.parquet as pq
from nddup.reading.formats import FORMATS, FileHead
from nddup.reading.outcomes import Reject
from nddup.reading.parquet_rows import read_parquet

out = io.BytesIO()
table = pa.table({"id": ["a", "b", "c"], "text": ["one two three", "four five", "six"]})
pq.write_table(table, out, compression="none", write_page_checksum=True)
data, head = out.getvalue(), FileHead(format=FORMATS["parquet"], encoding="utf-8", separator=b"")
texts = [text.as_py() for text in table["text"]]
for place in PLACES:
    flipped = bytearray(data)
    flipped[place // 8] ^= 1 << place % 8
    found = list(read_parquet(io.BytesIO(flipped), head, limit=1 << 20, max_record=1 << 20))
    rejects = [one.reason for one in found if isinstance(one, Reject)]
    assert rejects or len(found) == 3, (place, found)
print("no flip ended the process")
"""


def read(column: pa.Array, *, name: str = "id") -> list[Record | Reject]:
    """Return the records of a file with this column as its ids, or as its texts."""
    other = {"text": ["some text"] * len(column)} if name == "id" else {"id": ["a"] * len(column)}
    out = io.BytesIO()
    pq.write_table(pa.table({name: column, **other}), out)
    return list(read_parquet(io.BytesIO(out.getvalue()), HEAD, limit=None, max_record=1 << 20))


def test_a_flipped_bit_is_a_reject_or_does_no_harm() -> None:
    """Whichever bit of a file is flipped, all rows are read or a reject tells it; the process goes on."""
    program = FLIPS.replace("PLACES", "random.Random(7).sample(range(len(data) * 8), 300)")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (0, "no flip ended the process\n"), ran.stderr


def test_damaged_metadata_of_a_column() -> None:
    """Sizes in the metadata that contradict the type of a column are a reject; pyarrow alone would end the process."""
    program = (
        FLIPS.replace("PLACES", "(1522, 1642, 2310, 2974)")
        .replace(", write_page_checksum=True", "")
        .replace("assert rejects or len(found) == 3, (place, found)", "pass")
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        (pa.array([UUID(int=5).bytes, UUID(int=6).bytes], pa.uuid()), [str(UUID(int=5)), str(UUID(int=6))]),
        (pa.array([2**53 + 1, 2**53, None]), ["9007199254740993", "9007199254740992", None]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([1.0, 0.1, 1e17, float("nan"), None]), ["1", "0.1", "100000000000000000", None, None]),
        (pa.array([0.1, 3.0], pa.float32()), ["0.1", "3"]),
        (pa.array([Decimal("1.50"), Decimal("-3.00")]), ["1.50", "-3.00"]),
        (pa.array([b"\xff\x01", b"\xfe\x01", b"ab"]), ["0xff01", "0xfe01", "ab"]),
        (pa.array([b"\xff\x01", b"\xfe\x01"], pa.binary(2)), ["0xff01", "0xfe01"]),
        (pa.array(["a" * 20, "b"], pa.string_view()), ["a" * 20, "b"]),
        (pa.array(["a", "b", "a"], pa.large_string()).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([1_729_989_000], pa.timestamp("s", "Europe/Berlin")), ["2024-10-27 00:30:00.000Z"]),
    ],
)
def test_ids_keep_their_exact_value(column: pa.Array, ids: list[str | None]) -> None:
    """An id is the text of its value; different values have different texts."""
    found = read(column)

    assert [one.doc_id for one in found] == ids
    assert all(isinstance(one, Record) for one in found)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()])
def test_texts_of_every_type_of_string(kind: pa.DataType) -> None:
    """A text is the same in every type that Arrow has for strings and bytes."""
    texts = ["Сто слов о погоде", "a longer text than fits into a view"]
    found = read(pa.array([text.encode() for text in texts]).cast(pa.binary()).cast(kind), name="text")

    values = [one.fields[0] for one in found if isinstance(one, Record)]
    assert [value.decode() if isinstance(value, bytes) else value for value in values] == texts


def test_what_is_no_text_is_refused() -> None:
    """A column of lists of numbers is no text; strings that are not UTF-8 are rejects, row by row."""
    lists = read(pa.array([[1], [2]]), name="text")
    assert [one.reason for one in lists if isinstance(one, Reject)] == ["no records"]

    data = pa.array([b"good", b"b\xffd"])
    strings = read(pa.StringArray.from_buffers(2, data.buffers()[1], data.buffers()[2]), name="text")
    assert [one.reason if isinstance(one, Reject) else one.fields[0] for one in strings] == ["good", "malformed"]


def test_rows_that_are_missing_are_told() -> None:
    """A file whose row groups have fewer rows than it promises is damaged."""
    out = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(100)), "text": ["text"] * 100}), out, compression="none")
    data = out.getvalue()
    footer = data.rfind(b"\x16\xc8\x01")  # 100 rows, as a number of the metadata of the file or of its row group
    found = list(
        read_parquet(
            io.BytesIO(data[:footer] + b"\x16\xc6\x01" + data[footer + 3 :]), HEAD, limit=None, max_record=1 << 20
        )
    )

    assert any(isinstance(one, Reject) and one.reason == "damaged" for one in found)
