"""FIMI files: how items, lines and transactions are read, and how sets are written."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.mining import fimi
from nddup.mining.fimi import format_sets, read_fimi
from nddup.mining.frequent_sets import mine_context


def read_back(path: Path) -> list[set[bytes]]:
    """Read the transactions of a file as sets of names."""
    context, names = read_fimi(path)
    rows = np.split(context.items, context.offsets[1:-1])
    return [{names[item] for item in row.tolist()} for row in rows if row.size]


def write(folder: Path, data: bytes) -> Path:
    path = folder / "context.fimi"
    path.write_bytes(data)
    return path


def test_reads_what_people_write(tmp_path: Path) -> None:
    """The reader accepts any blanks, blank lines, repeated items, Windows line ends, no last line end, and any word."""
    path = write(tmp_path, b"3 1 2 1\n\n \t \n2\t1\r\n  10   2 \n\x0bd\xd0\xbec:7 2 -5 2")

    context, names = read_fimi(path)

    assert read_back(path) == [{b"3", b"1", b"2"}, {b"2", b"1"}, {b"10", b"2"}, {b"d\xd0\xbec:7", b"2", b"-5"}]
    assert names == [b"1", b"2", b"3", b"-5", b"10", b"d\xd0\xbec:7"]
    assert context.offsets.tolist() == [0, 3, 5, 7, 10]
    assert [str(array.dtype) for array in context[:2]] == ["int64", "int32"]


def test_a_byte_order_mark_is_no_part_of_an_item(tmp_path: Path) -> None:
    """The first item is the one without the mark, in gzip too; a file in UTF-16 is refused."""
    path = write(tmp_path, "\ufeff1 2\n1 2\n".encode())
    packed = tmp_path / "context.gz"
    packed.write_bytes(gzip.compress("\ufeff1 2\n1 2\n".encode()))

    assert read_back(path) == read_back(packed) == [{b"1", b"2"}, {b"1", b"2"}]
    assert read_fimi(write(tmp_path, "\ufeff".encode()))[1] == []
    with pytest.raises(ValueError, match="UTF-16"):
        read_fimi(write(tmp_path, "1 2\n".encode("utf-16")))


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \r\n\t"])
def test_a_file_without_items_has_no_transactions(tmp_path: Path, data: bytes) -> None:
    """An empty file and blank lines give no transactions."""
    context, names = read_fimi(write(tmp_path, data))

    assert context.offsets.tolist() == [0]
    assert context.items.size == 0
    assert names == []


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
@settings(max_examples=40)
@given(lines=st.lists(st.lists(st.sampled_from([b"1", b"22", b"333", b"z", b"\xff\x00x"]), max_size=5), max_size=8))
def test_blocks_cut_no_item_and_no_line(
    tmp_path_factory: pytest.TempPathFactory, block: int, lines: list[list[bytes]]
) -> None:
    """For any block size, the transactions are those of the lines, plain and compressed."""
    text = b"\n".join(b" ".join(line) for line in lines)
    expected = [set(line) for line in lines if line]
    folder = tmp_path_factory.mktemp("fimi")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fimi, "BLOCK", max(block, 3))
        assert read_back(write(folder, text)) == expected
        assert read_back(write(folder, gzip.compress(text))) == expected


def test_many_items_keep_their_names(tmp_path: Path) -> None:
    """A hundred thousand numbered items, over several blocks, stay distinct and in numeric order."""
    numbers = np.random.default_rng(1).permutation(100_000)
    rows = [b" ".join(b"%d" % i for i in row) for row in np.split(numbers, 1000)]

    context, names = read_fimi(write(tmp_path, b"\n".join(rows * 3)))

    assert names == [b"%d" % i for i in range(100_000)]
    assert (context.items == np.tile(numbers, 3)).all()
    assert (np.diff(context.offsets) == 100).all()


def test_says_what_is_no_context(tmp_path: Path) -> None:
    """A damaged gzip file and a word that is too long are errors."""
    packed = gzip.compress(b"1 2 3\n" * 100_000)

    with pytest.raises(OSError, match="damaged gzip"):
        read_fimi(write(tmp_path, packed[: len(packed) // 2]))
    with pytest.raises(OSError, match=r"CRC|gzip"):
        read_fimi(write(tmp_path, packed[:-8] + b"12345678"))
    with pytest.raises(ValueError, match="an item of more than 1,048,576 bytes"):
        read_fimi(write(tmp_path, b"x" * 3_000_000))


def test_writes_items_then_support(tmp_path: Path) -> None:
    """Each line has the items of a set, shorter names first, and then its support."""
    context, names = read_fimi(write(tmp_path, b"10 9 b\n9 10\nb aa\n"))

    assert list(format_sets(mine_context(context, 1).itemsets, names)) == [b"9 b 10 1\n", b"b aa 1\n"]
