"""Expanding and cutting files from their start: everything that decodes is given, and what does not is reported."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading import streams
from nddup.reading.records import Reject
from nddup.reading.streams import (
    LINE_BYTES,
    Chunk,
    Expanded,
    StoppedError,
    compression_of,
    cut_pieces,
    expand_head,
    reject_parts,
)
from nddup.rewriting.rewrite_file import pack
from tests.samples_by_night import first

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=1),
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}


class Slow(io.BytesIO):
    """A stream that gives at most a few bytes at a time, as a network may."""

    def read(self, size: int | None = -1) -> bytes:
        """Return at most seven bytes."""
        return super().read(min(size, 7) if size is not None and size > 0 else size)


def cut(data: bytes, separator: bytes, *, limit: int = 1 << 20, unit: int = 1) -> list[Chunk | Reject]:
    return list(reject_parts(cut_pieces(Expanded(io.BytesIO(data), ""), separator, max_record=limit, unit=unit)))


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_members_one_after_another_are_one_stream(name: str) -> None:
    """Files put together by `cat` expand to all their parts, however slowly they come."""
    data = b"".join(COMPRESSIONS[name](part) for part in (b"one ", b"two " * 10_000, b"three"))

    stream = Expanded(Slow(data), name)

    assert compression_of(data) == name
    assert b"".join(iter(lambda: stream.read(1000), b"")) == b"one " + b"two " * 10_000 + b"three"


@pytest.mark.parametrize("name", [name for name in COMPRESSIONS if name])
@pytest.mark.parametrize("share", first(1, [0.9999, 0.7]))
def test_a_cut_file_gives_its_start_and_then_says_so(name: str, share: float) -> None:
    """The bytes expanded from a cut file are a true beginning, and then an error is raised."""
    whole = b"".join(b"%d;" % (n * n * 7919) for n in range(100_000))
    data = COMPRESSIONS[name](whole)
    stream, found = Expanded(io.BytesIO(data[: int(len(data) * share)]), name), bytearray()

    with pytest.raises(StoppedError) as stopped:  # noqa: PT012 - what came before it is looked at
        for piece in iter(lambda: stream.read(1000), b""):
            found.extend(piece)

    assert stopped.value.reason == "damaged"
    assert whole.startswith(found)
    assert len(found) > len(whole) * (share - 0.7) * 0.5  # bzip2 gives whole blocks only


def test_a_flipped_byte_is_said() -> None:
    """A file that decodes but has a wrong checksum gives all its records, and then a reject."""
    data = bytearray(gzip.compress(b"a\nb\nc\n"))
    data[-6] ^= 1

    found = list(reject_parts(cut_pieces(Expanded(io.BytesIO(bytes(data)), "gzip"), b"\n", max_record=100)))

    assert [item.value for item in found if isinstance(item, Chunk)] == [b"a", b"b", b"c"]
    assert [item.reason for item in found if isinstance(item, Reject)] == ["damaged"]


def test_expansion_has_a_limit() -> None:
    """A bomb is expanded up to the limit and then stopped with an error that names the setting."""
    stream = Expanded(io.BytesIO(gzip.compress(bytes(10_000_000))), "gzip", limit=1_000_000)

    got: list[bytes] = []
    with pytest.raises(StoppedError, match="max_expansion") as stopped:
        got.extend(iter(lambda: stream.read(65_536), b""))

    assert stopped.value.reason == "too large"
    assert len(b"".join(got)) == 1_000_000


@pytest.mark.parametrize("record", [b"{}\n", b"1\r", b"<d>a</d>", "<d>a</d>".encode("utf-16-le")])
def test_short_records_count_for_more_than_their_bytes(record: bytes) -> None:
    """Each takes memory, however short it is: a line, a line of a Macintosh, or an element without a line end."""
    stream = Expanded(io.BytesIO(gzip.compress(record * 100_000)), "gzip", limit=1_000_000)

    got: list[bytes] = []
    with pytest.raises(StoppedError, match="max_expansion"):
        got.extend(iter(lambda: stream.read(1_000), b""))

    assert len(b"".join(got)) // len(record) <= 1_000_000 // LINE_BYTES


@given(st.lists(st.binary(max_size=40)), st.sampled_from([b"\n", b"</d>", b"aa"]), st.integers(1, 60))
def test_chunks_are_what_stands_between_separators(parts: list[bytes], separator: bytes, limit: int) -> None:
    """Chunks are those of `bytes.split`, except that each one above the limit is a reject with its length."""
    data = separator.join(parts)

    found = cut(data, separator, limit=limit)

    expected = data.split(separator)
    if not expected[-1]:
        expected.pop()
    assert len(found) == len(expected)
    for item, part in zip(found, expected, strict=True):
        if len(part) > limit:
            assert isinstance(item, Reject)
            assert item.reason == "too large"
            assert item.detail.startswith(f"{len(part):,} bytes")
        else:
            assert isinstance(item, Chunk)
            assert item.value == part
    assert [item.is_last for item in found if isinstance(item, Chunk)][:-1].count(True) == 0


def test_a_long_record_is_passed_over_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of a record that is too long is exact, also if pieces end inside a separator."""
    monkeypatch.setattr("nddup.reading.streams.PIECE", 10)
    for size in range(95, 130):
        data = b"<d>a</d>" + b"x" * size + b"</d><d>b</d>"

        found = cut(data, b"</d>", limit=50)

        assert [item.detail.split()[0] if isinstance(item, Reject) else item.value for item in found] == [
            b"<d>a",
            str(size),
            b"<d>b",
        ]


def test_a_separator_of_utf_16_lies_on_whole_units() -> None:
    """Bytes that look like the separator across two characters do not cut."""
    text = "一ਊ\nb"  # U+0A0A holds the byte of a line end twice

    found = cut(text.encode("utf-16-le"), "\n".encode("utf-16-le"), unit=2)

    assert [item.value.decode("utf-16-le") for item in found if isinstance(item, Chunk)] == ["一ਊ", "b"]


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_head_is_the_start_of_what_expands(name: str) -> None:
    """A head has the requested length, or as much of damaged bytes as decodes."""
    data = COMPRESSIONS[name](b"0123456789" * 1000)

    assert expand_head(data, 15) == b"012345678901234"
    assert expand_head(data, 1 << 20) == b"0123456789" * 1000
    assert (b"0123456789" * 1000).startswith(expand_head(data[: len(data) - 3], 1 << 20))


def expand(data: bytes, name: str) -> tuple[bytes, str]:
    """Return what a file expands to, and why reading stopped; empty at its end."""
    stream, found = Expanded(io.BytesIO(data), name), bytearray()
    try:
        for piece in iter(lambda: stream.read(5000), b""):
            found += piece
    except StoppedError as error:
        return bytes(found), error.reason
    return bytes(found), ""


@pytest.mark.parametrize("name", [name for name in COMPRESSIONS if name])
@given(data=st.data())
def test_members_padding_and_damage(name: str, data: st.DataObject) -> None:
    """Zero bytes between members are no damage; anything else is told, after all bytes of the members before it."""
    parts = data.draw(st.lists(st.binary(max_size=3000), min_size=1, max_size=5))
    members = [COMPRESSIONS[name](part) + bytes(4 * data.draw(st.sampled_from([0, 0, 1, 500, 5000]))) for part in parts]
    assert expand(b"".join(members), name) == (b"".join(parts), "")

    at = data.draw(st.integers(0, len(parts)))
    damage = data.draw(st.sampled_from(["junk", "long junk", "flip", "cut"]))
    if at == len(parts):
        members.append(b"")
    if "junk" in damage or not members[at]:
        members[at] = b"junk" * (2500 if damage == "long junk" else 1) + members[at]
    elif damage == "flip":  # in the first bytes, which say what the member is
        members[at] = bytes([members[at][0] ^ 0x80]) + members[at][1:]
    else:
        members[at:] = [members[at][:11]]

    found, reason = expand(b"".join(members), name)

    assert found.startswith(b"".join(parts[:at]))
    assert b"".join(parts).startswith(found)
    assert reason == "damaged"


@pytest.mark.parametrize("name", ["bz2", "xz", "zstd"])
def test_a_flipped_bit_anywhere_loses_nothing_before_it(name: str) -> None:
    """Whichever bit of the second of three members is flipped, the first one is read, and the damage is told."""
    parts = [b"%d one;" % n * 40 for n in range(3)]
    members = [COMPRESSIONS[name](part) for part in parts]

    silent = []
    for place in range(len(members[1]) * 8):
        second = bytearray(members[1])
        second[place // 8] ^= 1 << place % 8
        found, reason = expand(members[0] + bytes(second) + members[2], name)
        assert found.startswith(parts[0])
        if reason != "damaged" and found != b"".join(parts):
            silent.append(place)

    assert silent == []


def test_skippable_frames_of_zstandard() -> None:
    """Frames to be skipped hold no text, also first in a file (`pzstd`) and last (the table of a seekable file)."""
    skipped = b"\x5e\x2a\x4d\x18" + (3000).to_bytes(4, "little") + b"\x8f" * 3000
    data = b"".join(skipped + COMPRESSIONS["zstd"](part) for part in (b"one ", b"two")) + skipped

    assert compression_of(data) == "zstd"
    assert expand(data, "zstd") == (b"one two", "")
    assert expand_head(data, 5) == b"one t"


def test_a_long_window_of_zstandard() -> None:
    """`zstd --long=31`, as large dumps are compressed, is read; its window takes memory only as far as it expands."""
    window = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=window).compressobj()
    data = packer.compress(b"one two") + packer.flush()

    assert expand(data, "zstd") == (b"one two", "")


def test_a_text_is_no_bzip2() -> None:
    """A text may begin with the letters that begin a bzip2 file."""
    assert compression_of(b"BZh is how a compressed file begins") == ""
    assert compression_of(b"BZh9 is how it begins") == ""
    assert compression_of(bz2.compress(b"")) == compression_of(bz2.compress(b"a")) == "bz2"


def test_nothing_is_cut_at_an_empty_separator() -> None:
    """It is an error at once: every place of a file would be one."""
    with pytest.raises(ValueError, match="the bytes between two records"):
        cut(b"some bytes", b"")


def test_a_compression_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry in the declarations is all that a new compression needs to be recognised, read, and written again."""
    toy = streams.Compression(rb"\x78\x9c", lambda: zlib.decompressobj, 7, zlib.compressobj, b"")
    monkeypatch.setitem(streams.COMPRESSIONS, "zlib", toy)

    for name in streams.COMPRESSIONS:
        packed = b"".join(pack([b"some ", b"bytes ", None, b"of it\n"], name))
        assert compression_of(packed) == name
        assert packed.endswith(streams.COMPRESSIONS[name].end)
        assert b"".join(iter(Expanded(io.BytesIO(packed), name).read, b"")) == b"some bytes of it\n"


def expanded(raw: io.BytesIO, name: str) -> bytes:
    stream = Expanded(raw, name)
    return b"".join(iter(lambda: stream.read(1000), b""))


def test_a_dictionary_in_the_first_frame() -> None:
    """The frames of a WARC file may need the dictionary that its first frame holds, as it is or compressed."""
    records = [
        b"WARC/1.0 record %d of an archive, with words that are in all of them" % number for number in range(300)
    ]
    made = zstandard.train_dictionary(2_000, [*records])
    frames = b"".join(map(zstandard.ZstdCompressor(dict_data=made).compress, records))
    plain = b"".join(map(zstandard.compress, records))

    def frame(held: bytes) -> bytes:
        return b"\x5d\x2a\x4d\x18" + len(held).to_bytes(4, "little") + held

    known, packed = frame(made.as_bytes()), frame(zstandard.compress(made.as_bytes()))
    for data in (known + frames, packed + frames, known + plain, frame(b"") + plain, frame(b"a note") + plain, plain):
        assert compression_of(data) == "zstd"
        for raw in (io.BytesIO(data), Slow(data)):
            assert expanded(raw, "zstd") == b"".join(records)
    for data in (frames, frame(made.as_bytes()[:99]) + frames, known[:-9], known[:5], frame(b"")[:5]):
        with pytest.raises(StoppedError):
            expanded(io.BytesIO(data), "zstd")
