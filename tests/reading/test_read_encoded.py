"""Records give the text that Python's codecs decode, to the character."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nddup.reading.charsets import (
    SINGLE_BYTE,
    canonical_charset,
    declared_charset,
    decode_content,
    find_encoding,
    has_characters,
)
from nddup.reading.decoding import Decoded
from nddup.reading.markup import strip_markup
from nddup.reading.records import Record, read_encoded, read_text

CHARSETS = sorted(SINGLE_BYTE)
LABELS = ["cp1251", "koi8-r", "cp1252", "iso8859-8", "utf-8", "gb18030", "iso2022_jp", "utf-16-le", None]
_HEADS = "|<meta charset=koi8-r>|<meta charset=windows-1251>|<meta charset=utf-8>|<meta charset=utf-16>|\ufeff"
_WORDS = "Съешь же ещё|«этих»|— мягких|<p>|</p>|<b class=мяч>|&nbsp;|&#151;|&mdash;|<br>| |булок\r\n|naïve|日本"

TEXTS = st.builds(
    lambda head, words: head + "".join(words),
    st.sampled_from(_HEADS.split("|")),
    st.lists(st.sampled_from(_WORDS.split("|")), max_size=30),
)
ENCODED = st.builds(
    lambda text, charset: text.encode(charset, "ignore"), TEXTS, st.sampled_from(["cp1251", "koi8-r", "utf-8", "cp932"])
)
DAMAGED = st.builds(
    lambda raw, bad, at: raw[: at % (len(raw) + 1)] + bad + raw[at % (len(raw) + 1) :],
    ENCODED,
    st.sampled_from([b"", b"\x98", b"\xff", b"\xd0", b"\x81\x8d", b"\0", b"\xed\xa0\x80", b"\x1b$B", b"\xef\xbf\xbd"]),
    st.integers(0, 300),
)


def decode_each(raw: bytes, encoding: str) -> tuple[str, bytes]:
    """Decode piece by piece, as Python names the places where it fails; return the text and the bytes left out."""
    text, lost = "", b""
    while True:
        try:
            return text + raw.decode(encoding), lost
        except UnicodeDecodeError as error:
            text += raw[: error.start].decode(encoding) + "\ufffd" * (error.end - error.start)
            lost, raw = lost + raw[error.start : error.end], raw[error.end :]


def may_be_wide(raw: bytes, charset: str | None) -> bool:
    """Return whether bytes may be UTF-16 or UTF-32: by a mark, zero bytes, or the bytes of Thai or Han."""
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<", b"{\0", b"\0{")) or b"\x0e" in raw:
        return True
    blanks = sum(byte in b"\t\n\f\r" for byte in raw)
    is_one_byte = not set(raw) & {*range(1, 32), 127} - {*b"\t\n\f\r\x1b"} and 5 * blanks < len(raw)
    if 0 in raw:
        return 5 * raw.count(0) >= 2 * len(raw) or not is_one_byte
    return not raw.isascii() and charset is not None and str(canonical_charset(charset)).startswith("utf-16")


def decode_by_definition(raw: bytes, charset: str | None) -> Decoded | None:
    """Decode by the first charset that fits, with Python's codecs; None if it is detected, or given by a mark."""
    if may_be_wide(raw, charset) or b"\x1b" in raw or b"~{" in raw:  # ISO-2022 and HZ are detected
        return None
    given_charset = canonical_charset(charset) if charset else None
    is_wide = given_charset in ("utf-16-le", "utf-16-be")
    if is_wide and 0 not in raw:
        given_charset, is_wide = None, False
    if not is_wide and raw.isascii() and b"\x1b" not in raw:
        return Decoded(raw.decode("ascii"), "ascii")

    first = given_charset or declared_charset(raw)
    beyond_ascii = sum(byte >= 128 for byte in raw)
    if first and not is_wide and is_utf8(raw) and beyond_ascii >= (1 if first in SINGLE_BYTE else 12):
        given_charset = "utf-8"
    is_letter = raw[-1:] > b"\xc3" and raw[:-1].isascii()
    for encoding in filter(None, (given_charset, declared_charset(raw), None if is_letter else "utf-8")):
        try:
            text, lost = raw.decode(encoding), b""
        except UnicodeDecodeError as error:
            is_cut = error.reason == "unexpected end of data"
            text, lost = decode_each(raw, encoding)
        else:
            return Decoded(text, encoding)
        if is_cut or len(lost) * 10 <= beyond_ascii:
            return Decoded(text, encoding, lost)
    return None


def is_utf8(raw: bytes) -> bool:
    """Return whether bytes hold a character beyond ASCII in UTF-8, and else at most a cut one at the end."""
    try:
        return not raw.decode().isascii()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and not raw[: error.start].isascii()


@pytest.mark.parametrize("encoding", CHARSETS)
def test_every_byte_that_python_decodes_is_a_character(encoding: str) -> None:
    """A byte is a character of a charset where Python's codec decodes it."""
    for byte in range(256):
        is_character = bytes([byte]).decode(encoding, "replace") != "\ufffd"
        assert has_characters(b"a%c" % byte, encoding) == is_character


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "koi8-r", "cp1251"])
def test_stray_zeros_make_no_text_wide(encoding: str) -> None:
    """Zero bytes here and there in a text of one byte a character, or of UTF-8, do not make it UTF-16."""
    words = "word" if encoding == "ascii" else "слово"
    text = f"<meta charset={encoding}>" + f" {words}, {words}." * 8

    for at in range(1, len(text)):
        damaged = f"{text[:at]}\0{text[at : at + 2]}\0{text[at + 2 :]}".encode(encoding)
        assert decode_content(damaged).text.replace("\0", "") == text


@given(DAMAGED | st.binary(max_size=200), st.sampled_from(LABELS))
@example(b"<me\0ta charset=koi8-r>", "cp1251")
@example(b"\x98" + "п".encode("cp1251") * 20, "cp1251")
@example(b"\x98" + "п".encode("cp1251") * 5, "cp1251")
@example("п".encode()[:1], None)
@example("ПП".encode()[:3], "cp1251")
@example(b"\xef\xbf\xbd\xd0 \xd0\xbf" * 12, "utf-8")
def test_the_first_charset_that_fits(raw: bytes, charset: str | None) -> None:
    """The first charset that fits gives the text and the number of bytes that it cannot decode."""
    expected = decode_by_definition(raw, charset)
    found = find_encoding(raw, charset)

    assert found.decode() == decode_content(raw, charset)
    assert found.replaced == found.decode().replaced
    if expected is not None:
        assert decode_content(raw, charset) == expected


@given(DAMAGED | st.binary(max_size=200), st.sampled_from(LABELS), st.sampled_from([True, False, None]))
@example("\ufeff<p>да".encode(), None, True)  # noqa: FBT003
@example(b"<p>\xcf\xf0\x98\xe8<p>" + "п".encode("cp1251") * 20, "cp1251", True)  # noqa: FBT003
def test_a_page_read_as_stored_has_the_text_of_the_decoded_page(
    raw: bytes,
    charset: str | None,
    is_markup: bool | None,  # noqa: FBT001
) -> None:
    """Text and undecodable bytes are those of the decoded page; `is_content` is true only for unchanged content."""
    record = Record(None, None, (raw,), is_markup, charset)
    decoded = decode_content(raw, charset)
    found = read_encoded(record)

    assert (found.text.decode(), found.replaced, *found[3:]) == read_text(record)
    assert found.replaced == decoded.replaced
    assert not found.is_content or found.text == raw
    if is_markup is not None:
        assert found.text.decode() == (strip_markup(decoded.text) if is_markup else decoded.text)


@given(st.lists(DAMAGED | TEXTS, max_size=3), st.sampled_from([True, False, None]))
def test_several_fields(fields: list[bytes | str], is_markup: bool | None) -> None:  # noqa: FBT001
    """Fields of bytes or text are joined by line ends; no fields give an empty text."""
    record = Record(None, None, tuple(fields), is_markup, "cp1251", replaced=2)
    texts = [read_text(Record(None, None, (field,), is_markup, "cp1251")) for field in fields]

    assert read_text(record)[:2] == ("\n".join(one.text for one in texts), 2 + sum(one.replaced for one in texts))
    assert read_encoded(record)[:2] == (read_text(record).text.encode(), read_text(record).replaced)


@pytest.mark.parametrize("encoding", CHARSETS)
def test_a_page_in_any_charset_of_one_byte_a_character(encoding: str) -> None:
    """A page in a charset of one byte a character has the text of the same page in UTF-8."""
    raw = "<p>Да<b title='мяч'>нет</b>&nbsp;— «x» é<мяч></p>".encode(encoding, "ignore")

    found = read_encoded(Record(None, None, (raw,), True, encoding))  # noqa: FBT003

    assert found.text.decode() == strip_markup(raw.decode(encoding))


def test_fields_that_are_text_already_are_no_guess() -> None:
    """The number of guesses is a number for a record of several fields without bytes too: its column holds integers."""
    found = read_encoded(Record("a", None, ("a title", "a text"), is_markup=False))

    assert (found.guessed, type(found.guessed)) == (0, int)
