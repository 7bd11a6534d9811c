"""FIMI files: how items, lines and transactions are read, and how sets are written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.mining.fimi import format_sets, read_fimi
from nddup.mining.frequent_sets import mine_context


def read_back(*pieces: bytes) -> list[set[bytes]]:
    """Read the transactions of a file as sets of names."""
    context, names = read_fimi(pieces)
    rows = np.split(context.items, context.offsets[1:-1])
    return [{names[item] for item in row.tolist()} for row in rows if row.size]


def test_reads_what_people_write() -> None:
    """The reader accepts any blanks, blank lines, repeated items, any line ends, no last one, and any word."""
    text = b"3 1 2 1\n\n \t \n2\t1\r\n  10   2 \r\x0bd\xd0\xbec:7 2 -5 2"

    context, names = read_fimi([text])

    assert read_back(text) == [{b"3", b"1", b"2"}, {b"2", b"1"}, {b"10", b"2"}, {b"d\xd0\xbec:7", b"2", b"-5"}]
    assert names == [b"1", b"2", b"3", b"-5", b"10", b"d\xd0\xbec:7"]
    assert context.offsets.tolist() == [0, 3, 5, 7, 10]
    assert [str(array.dtype) for array in context[:2]] == ["int64", "int32"]


def test_a_byte_order_mark_is_no_part_of_an_item() -> None:
    """The first item is the one without the mark, in whatever pieces it comes; a file in UTF-16 is refused."""
    text = "\ufeff1 2\n1 2\n".encode()

    assert read_back(text) == read_back(text[:1], text[1:2], text[2:]) == [{b"1", b"2"}, {b"1", b"2"}]
    assert read_fimi(["\ufeff".encode()])[1] == []
    assert read_back(b"1") == [{b"1"}]
    with pytest.raises(ValueError, match="UTF-16"):
        read_fimi(["1 2\n".encode("utf-16")])


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \r\n\t"])
def test_a_file_without_items_has_no_transactions(data: bytes) -> None:
    """An empty file and blank lines give no transactions."""
    context, names = read_fimi([data])

    assert context.offsets.tolist() == [0]
    assert context.items.size == 0
    assert names == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@settings(max_examples=40)
@given(
    lines=st.lists(st.lists(st.sampled_from([b"1", b"22", b"333", b"z", b"\xff\x00x"]), max_size=5), max_size=8),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_pieces_cut_no_item_and_no_line(size: int, lines: list[list[bytes]], end: bytes) -> None:
    """For pieces of any size, the transactions are those of the lines."""
    text = end.join(b" ".join(line) for line in lines)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    assert read_back(*pieces) == [set(line) for line in lines if line]


def test_many_items_keep_their_names() -> None:
    """A hundred thousand numbered items, over several pieces, stay distinct and in numeric order."""
    numbers = np.random.default_rng(1).permutation(100_000)
    rows = [b" ".join(b"%d" % i for i in row) for row in np.split(numbers, 1000)]

    context, names = read_fimi([b"\n".join(rows) + b"\n"] * 3)

    assert names == [b"%d" % i for i in range(100_000)]
    assert (context.items == np.tile(numbers, 3)).all()
    assert (np.diff(context.offsets) == 100).all()


def test_a_word_that_is_too_long_is_an_error() -> None:
    """In one piece and in several."""
    for pieces in ([b"x" * 3_000_000], [b"x" * 1_000_000] * 3):
        with pytest.raises(ValueError, match="an item of more than 1,048,576 bytes"):
            read_fimi(pieces)


def test_writes_items_then_support() -> None:
    """Each line has the items of a set, shorter names first, and then its support."""
    context, names = read_fimi([b"10 9 b\n9 10\nb aa\n"])

    assert list(format_sets(mine_context(context, 1).itemsets, names)) == [b"9 b 10 1\n", b"b aa 1\n"]
