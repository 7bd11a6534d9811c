"""Charsets: what is declared, what is detected, and that nothing is lost silently."""

import base64
import bz2
import gzip
import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.reading.charsets import canonical_charset, declared_charset, decode_content, find_encoding
from nddup.reading.containers import container_head, is_binary
from nddup.reading.decoding import Decoded
from nddup.reading.detect import read_head
from nddup.reading.markup import strip_markup
from nddup.reading.records import record_text
from tests.places import SHARED
from tests.reading.record_files import records_of

needs_shared = pytest.mark.shared

ARCHIVE = "Старый архив города открыт для читателей каждый день, кроме понедельника. Вход свободный, книги на 3 языках."

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний."


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("Windows-1251", "cp1251"),
        ("win-1251", "cp1251"),
        ("KOI8-R", "koi8-r"),
        ("utf8", "utf-8"),
        ("latin1", "cp1252"),
        ("gb2312", "gb18030"),
        ("Shift_JIS", "cp932"),
        ("iso-8859-5", "iso8859-5"),
        ("csISOLatin9", "iso8859-15"),
        ("latin_1", "cp1252"),
        ("cp932", "cp932"),
        ("win-1250", "cp1250"),
        ("windows1252", "cp1252"),
        ("IBM850", "cp850"),
        ("cp-852", "cp852"),
        ("dos-866", "cp866"),
        ("windows-31j", "cp932"),
        ("no-such", None),
        ("\ud800", None),
        ("", None),
        ("utf-7", None),
        ("unicode_escape", None),
        ("rot13", None),
        ("a\0b", None),
    ],
)
def test_labels(label: str, codec: str | None) -> None:
    """Labels of the web are known; codecs that are not encodings of documents are not."""
    assert canonical_charset(label) == codec


@pytest.mark.parametrize("codec", ["cp1251", "koi8-r", "utf-8", "cp866", "iso8859-5"])
@pytest.mark.parametrize(
    "head",
    [
        '<?xml version="1.0" encoding="{}"?>',
        '<html><head><meta charset="{}">',
        "<META http-equiv=Content-Type content='text/html; charset={}'>",
    ],
)
def test_declarations(head: str, codec: str) -> None:
    """A declaration of any of the three forms is followed."""
    text = head.format(codec) + f"<p>{RUSSIAN}</p>"

    assert decode_content(text.encode(codec)) == Decoded(text, codec)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        *((ARCHIVE, codec) for codec in ("cp855", "mac-cyrillic", "koi8-r", "cp1251")),
        ("Ο παλιός κατάλογος της πόλης είναι ανοιχτός για όλους κάθε ημέρα", "cp737"),
        ("도시의 오래된 기록은 누구나 매일 읽을 수 있습니다 장소는 역 앞입니다", "johab"),
        ("旧的记录每天都可以阅读地方在车站前面", "utf-16-le"),
        ("旧的记录每天都可以阅读，地方在车站前面。", "utf-16-be"),
    ],
)
def test_rarer_encodings_are_detected_and_are_no_guess(text: str, codec: str) -> None:
    """Encodings of DOS and of the Macintosh, old Korean, and Han in UTF-16 without a mark or a zero byte."""
    found = find_encoding(text.encode(codec))

    assert (found.decode().text, found.is_guess) == (text, False)


def test_an_encoding_that_the_letters_leave_open_is_a_guess() -> None:
    """A few letters, or those of an encoding that no codec has, are told to be a guess; what is declared never is."""
    few, euc_tw = "Вход здесь".encode("koi8-r")[:6], b"\xc4\xe3\xc5\xca\xe4\xb6\xdd\xec\xc9\xb3\xd2\xfb" * 9

    assert find_encoding(few).is_guess
    assert find_encoding(euc_tw).is_guess or "\ufffd" in decode_content(euc_tw).text
    assert not find_encoding(few, "koi8-r").is_guess
    assert not find_encoding(b"<meta charset=koi8-r>" + few).is_guess
    assert not find_encoding("Вход".encode()).is_guess


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16"])
def test_byte_order_mark_wins(codec: str) -> None:
    """A mark overrules what is given and declared, and is not part of the text."""
    text = f"<meta charset=koi8-r>{RUSSIAN}"

    assert decode_content(text.encode(codec), "windows-1251").text == text


def test_given_charset_precedes_the_declaration() -> None:
    """The user's setting, or the HTTP header, wins over <meta>."""
    raw = f"<meta charset=koi8-r>{RUSSIAN}".encode("cp1251")

    assert decode_content(raw, "windows-1251").text.endswith(RUSSIAN)


@pytest.mark.parametrize("label", ["utf-8", "utf-16", "no-such-charset", "euc-kr"])
def test_wrong_declaration_falls_through(label: str) -> None:
    """A declared charset that does not fit the bytes is ignored."""
    raw = f"<meta charset={label}>{RUSSIAN}".encode("cp1251")

    decoded = decode_content(raw, label)

    assert decoded.text.endswith(RUSSIAN)
    assert decoded.encoding == "cp1251"


@pytest.mark.parametrize("label", ["gb2312", "shift_jis", "big5", "euc-jp", "euc-kr", "windows-1251", "iso-8859-15"])
@pytest.mark.parametrize(
    "text", [ARCHIVE, "这是一个用于测试的中文文件。", "これは試験のための文書です。", "Grüße, Äpfel, Öl, süß, für Köln"]
)
def test_utf_8_is_read_as_such_whatever_is_declared(label: str, text: str) -> None:
    """A page or a letter in UTF-8 under the label of an old charset, whole or cut inside a character."""
    assert decode_content(text.encode(), label) == Decoded(text, "utf-8")
    assert decode_content(text.encode()[:-1], label).text.startswith(text[:-1])
    assert decode_content(f"<meta charset={label}>{text}".encode()).text.endswith(text)


def test_a_few_bytes_are_read_as_declared() -> None:
    """They may be UTF-8 by chance."""
    assert decode_content("眉".encode("gbk"), "gb2312").text == "眉"
    assert decode_content("眉".encode("gbk"), "utf-8").text == "ü"


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [(ARCHIVE, "cp1251", ""), (ARCHIVE, "koi8-r", "utf-8"), (ARCHIVE, "utf-8", "windows-1251"),
     (ARCHIVE, "utf-8", "gbk"), ("これは試験のための文書です。" * 3, "cp932", ""), (ARCHIVE, "cp866", "cp866")],
)  # fmt: skip
def test_a_file_in_another_encoding_than_it_declares(text: str, codec: str, label: str) -> None:
    """JSON lines, a table and XML that declare none, or another, give the text; what a record declares is its own."""
    declaration = f'<?xml version="1.0" encoding="{label}"?>' if label else ""
    xml = "".join(f"<document><id>{number}</id><text>{text}</text></document>" for number in "12")
    files = [f"{declaration}<docs>{xml}</docs>"]
    if not declaration:
        files.append("".join(json.dumps({"id": n, "text": text}, ensure_ascii=False) + "\n" for n in "12"))
        head = container_head(f"id,text\n1,{text}\n".encode(codec), "a.csv", None, {})
        assert head is not None
        assert head.encoding == codec
    for file in files:
        assert [record_text(record) for record in records_of(file.encode(codec))] == [text, text], file


def test_a_stray_byte_at_its_start_says_nothing_of_a_file() -> None:
    """It is one U+FFFD, where a long file may hold any text of UTF-8 behind its head, and in JSON, which is UTF-8."""
    long = b'{"id": 1, "text": "caf\xe9 %s"}\n' % (b"x" * (1 << 18))
    rows = b"id,text\n1,caf\xe9 %s\n" % (b"x" * (1 << 18))
    assert read_head(long).encoding == "utf-8"
    assert read_head(b'{"id": 1, "text": "caf\xe9"}').encoding == "utf-8"
    assert read_head(b'{"id": 1, "text": "caf\xe9"}\n' * 12).encoding == "iso8859-2"
    table = container_head(rows, "a.csv", None, {})
    assert table is not None
    assert table.encoding == "utf-8"
    marked = container_head("\ufeffid,text\n1,да\n".encode(), "a.csv", None, {})
    assert marked is not None
    assert (marked.encoding, marked.format.id) == ("utf-8-sig", "id")


def test_declared_utf_16_that_reads_as_ascii() -> None:
    """Bytes in which the declaration can be read are not UTF-16."""
    text = f'<?xml version="1.0" encoding="utf-16"?>{RUSSIAN}'

    assert decode_content(text.encode()) == Decoded(text, "utf-8")


def test_commented_declaration_is_none() -> None:
    """A <meta> inside a comment declares nothing."""
    assert declared_charset(b"<!-- <meta charset=koi8-r> --><meta charset=utf-8>") == "utf-8"


@pytest.mark.parametrize("codec", ["cp1251", "koi8-r"])
def test_undeclared_russian(codec: str) -> None:
    """cp1251 and KOI8-R are told apart without a declaration."""
    raw = f"<html><body><p class=x>{RUSSIAN}</p></body></html>".encode(codec)

    assert decode_content(raw).encoding == codec


def test_damaged_bytes_are_replaced_and_counted() -> None:
    """A UTF-8 page with two damaged bytes stays UTF-8; a U+FFFD of the page itself is not counted."""
    raw = b"\xff" + (RUSSIAN * 3 + "\ufffd").encode() + b"\xfe"

    decoded = decode_content(raw)

    assert decoded.encoding == "utf-8"
    assert decoded.replaced == 2
    assert decoded.text.count("\ufffd") == 3


def test_character_cut_at_the_end() -> None:
    """A page cut inside its last character is still UTF-8, however short."""
    decoded = decode_content("one é".encode()[:-1])

    assert decoded == Decoded("one \ufffd", "utf-8", b"\xc3")


@pytest.mark.parametrize("word", ["Café", "Perché", "Gruß", "Città", "Però"])
def test_last_letter_is_no_cut_character(word: str) -> None:
    """A title whose only accented letter is the last byte is in the charset it declares, or in one of one byte."""
    raw = word.encode("cp1252")

    assert decode_content(raw, "iso-8859-1").text == word
    assert decode_content(b"<meta charset=iso-8859-15>" + raw).text.endswith(word)
    assert decode_content(raw).replaced == 0
    assert decode_content(raw, "utf-8").replaced == 1


def test_empty() -> None:
    """No bytes give an empty text."""
    assert decode_content(b"").text == ""


def test_hostile_sample_is_searched_in_linear_time() -> None:
    """Unclosed tags and scripts before the first byte that is not ASCII cost no more than other bytes."""
    for piece in (b"<", b"<script ", b"<!--", b"<meta "):
        decode_content(piece * (200_000 // len(piece)) + b"\xe0\xff")


@given(raw=st.binary(max_size=300), charset=st.none() | st.text(max_size=12))
@settings(deadline=None)
def test_never_raises(raw: bytes, charset: str | None) -> None:
    """Any bytes and any label give text that UTF-8 can hold."""
    decoded = decode_content(raw, charset)

    assert decoded.text.encode().decode() == decoded.text
    assert decoded.replaced <= decoded.text.count("\ufffd")


@needs_shared
def test_real_russian_pages() -> None:
    """Every page of the collection is read as `meta.jsonl.gz` says, and a sample also without declarations."""
    with gzip.open(SHARED / "ruweb" / "meta.jsonl.gz") as lines:
        meta = [json.loads(line) for line in lines]
    xml = b"".join(bz2.decompress((SHARED / "ruweb" / f"ruweb.xml.{part}.bz2").read_bytes()) for part in (0, 1))
    pages = [base64.b64decode(found) for found in re.findall(rb'<content encoding="base64">([^<]*)', xml)]
    assert len(pages) == len(meta) == 1000

    wrong = [m for m, page in zip(meta, pages, strict=True) if decode_content(page).text != page.decode(m["encoding"])]
    assert wrong == []

    for m, page in list(zip(meta, pages, strict=True))[::10]:
        bare = re.sub(rb"(?i)charset=[\w\"'-]+|encoding=[\w\"'-]+", b"", page)
        assert strip_markup(decode_content(bare).text) == strip_markup(bare.decode(m["encoding"])), m["url"]


@needs_shared
def test_same_text_in_three_encodings() -> None:
    """The vim tutor in KOI8-R, cp1251 and UTF-8 is one text."""
    folder = SHARED / "encodings" / "vim-tutor"
    names = ("tutor.ru", "tutor.ru.cp1251", "tutor.ru.utf-8")

    assert len({decode_content((folder / name).read_bytes()).text for name in names}) == 1


@needs_shared
@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("tutor.cs.cp1250", "cp1250"),
        ("tutor.ja.euc", "euc_jp"),
        ("tutor.ja.sjis", "cp932"),
        ("tutor.zh.euc", "gb18030"),
        ("tutor.ko.euc", "cp949"),
        ("tutor.de", "cp1252"),
        ("tutor.tr.iso9", "cp1254"),
        ("tutor.el", "cp1253"),
    ],
)
def test_other_languages(name: str, codec: str) -> None:
    """Encodings of other languages than Russian are detected too."""
    assert decode_content((SHARED / "encodings" / "vim-tutor" / name).read_bytes()).encoding == codec


UNDECLARED = [
    *((ARCHIVE, codec) for codec in ("cp1251", "koi8-r", "iso8859-5", "cp866")),
    ("Стара історія міста відкрита для читачів щодня, крім понеділка; співробітники допоможуть.", "iso8859-5"),
    *(("古い記録は毎日だれでも読むことができます。場所は駅の前です。", codec) for codec in ("iso2022_jp", "cp932")),
    ("ﾊﾝｶｸ カナの古い記録は毎日だれでも読むことができます。", "iso2022_jp_ext"),
    ("도시의 오래된 기록은 누구나 매일 읽을 수 있습니다.", "iso2022_kr"),
    ("旧的记录每天都可以阅读,地方在车站前面。", "hz"),
    *((text, f"utf-{width}{end}") for text in (ARCHIVE, "Plain old text, on 2 lines.\n", "일 년 뒤, 古い 記録 1 2 3\n")
      for width in (16, 32) for end in ("", "-le", "-be")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "codec"), UNDECLARED)
def test_an_undeclared_encoding_is_detected(text: str, codec: str) -> None:
    """Encodings with escapes, wide ones with and without a mark, and those of Cyrillic are read, as pages and texts."""
    for document in (text, f"<html><body><p>{text}</p></body></html>"):
        decoded = decode_content(document.encode(codec))

        assert decoded.text == document
        assert decoded.replaced == 0
        if codec.startswith("iso2022"):
            declared = f"<meta charset=iso-8859-1>{document}"
            assert decode_content(declared.encode(codec), "utf-8").text == declared


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("e la città è cresciuta", "cp1252"),
        ("été déjà vu", "cp1252"),
        ("está mejorando", "cp1252"),
        ("więcej pieniędzy", "cp1250"),
        ("düzeldiğini söyledi.", "cp1254"),
    ],
)
def test_a_few_latin_words_are_of_no_other_script(text: str, codec: str) -> None:
    """Accented letters among plain ones are no Cyrillic, Greek or Han, however few words tell what they are."""
    decoded = decode_content(text.encode(codec)).text
    assert all(unicodedata.name(letter).startswith("LATIN") for letter in decoded if not letter.isascii()), decoded
    assert [letter for letter in decoded if letter.isascii()] == [letter for letter in text if letter.isascii()]


def test_signs_of_vendors_and_damage_leave_japanese_readable() -> None:
    """Mail in ISO-2022-JP holds signs that the standard has not; a pair that is none is lost, and no other."""
    mail = b"\x1b$B2q5D$O-!7nMKF|-j;3ED>&;v|b66$5$s\x1b(B \x1b(I1\x1b(B"
    text = "会議は①月曜日㈱山田商事髙橋さん ｱ"
    for charset in ("iso-2022-jp", None, "utf-8"):
        assert decode_content(mail, charset).text == text
    damaged = decode_content(mail.replace(b"2q", b"))"), "iso-2022-jp")
    assert damaged.text.endswith(text[1:])
    assert damaged.lost


@pytest.mark.parametrize(
    "text", [b"\x1b[1mbold\x1b[0m text", b"awk '{a}' ~{b} ~{", b"zeros\0in\0text", b"\0" * 50, b"PK\3\4\0\0"]
)
def test_what_looks_like_escapes_or_wide_characters_is_not(text: bytes) -> None:
    """Colours of a terminal, a tilde before a brace and stray zero bytes change nothing."""
    assert decode_content(text).text == text.decode("ascii")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "file",
    [
        '{"id": "1", "text": "один"}\n{"id": "2", "text": "two"}\n',
        "<r><doc><id>1</id><text>один</text></doc><doc><id>2</id><text>two</text></doc></r>",
    ],
)
def test_files_of_wide_characters_need_no_mark(file: str, encoding: str) -> None:
    """JSON lines and XML are cut and read in UTF-16 and UTF-32, with and without a byte order mark."""
    found = records_of(file.encode(encoding))

    assert [(one.doc_id, one.fields) for one in found] == [("1", ("один",)), ("2", ("two",))]


THAI = "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอนหรือวรรณยุกต์เช่นเดียวกับภาษาจีน"
HAN = "这是一个测试文档内容包括很多汉字没有空格也没有标点符号"
JAPANESE = "これはテスト文書です。日本語の文章をいくつか書いてみます。"
ARABIC = "أعلن رئيس الوزراء اليوم عن خطة جديدة لتطوير الاقتصاد الوطني وزيادة فرص العمل"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", [THAI, HAN, JAPANESE, "\n".join([HAN * 5] * 3), "\n".join([THAI * 5] * 3), f"{THAI} {THAI}"]
)
def test_utf_16_without_a_mark_in_scripts_without_blanks(text: str, codec: str) -> None:
    """Thai has no byte beyond ASCII in it; one character in Han, and a line end, has a zero byte."""
    assert decode_content(text.encode(codec)) == Decoded(text, codec)
    assert not is_binary(text.encode(codec))


@pytest.mark.parametrize("codec", ["cp932", "euc_jp", "gb18030", "big5hkscs", "cp949", "utf-8"])
@pytest.mark.parametrize("stray", [0, 1, 7, -1])
def test_a_stray_zero_makes_no_utf_16(codec: str, stray: int) -> None:
    """The bytes of a text in Han, of which pairs may be Han in UTF-16 too, with a zero byte at some place."""
    text = {"gb18030": HAN, "big5hkscs": "這是測試文檔", "cp949": "한국어 문장을 몇 개 써 보겠습니다"}.get(
        codec, JAPANESE
    ) * 5
    raw = bytearray(text.encode(codec))
    raw.insert(len(raw) if stray < 0 else stray, 0)

    assert not decode_content(bytes(raw), codec).encoding.startswith("utf-16")


def test_utf_16_that_mail_declares() -> None:
    """A short text of Han alone, in the charset that its part names; ASCII is none, whatever is declared."""
    assert decode_content("漢字文書".encode("utf-16-le"), "utf-16le").text == "漢字文書"
    assert decode_content(b"plain words", "utf-16le").text == "plain words"
    assert decode_content("Wörter".encode(), "utf-16").text == "Wörter"


@pytest.mark.parametrize("text", [ARABIC, f"<p>{ARABIC}</p>", "السلام عليكم ورحمة الله وبركاته"])
def test_arabic_of_iso_8859_6(text: str) -> None:
    """It is told from cp1256 by letters that are French there; Persian, and Arabic with French, are cp1256."""
    assert decode_content(text.encode("iso8859-6")).text == text
    assert decode_content(text.encode("cp1256")).text == text
    mixed = f"{ARABIC} déjà élevé à Genève {ARABIC}"
    assert decode_content(mixed.encode("cp1256")).text == mixed


@pytest.mark.parametrize(
    "other",
    [
        '<meta name="description" content="how to set charset=windows-1251 in a page">',
        "<meta content='text with charset=windows-1251' property='og:title'>",
        "<meta charset=none-such>",
        '<meta itemprop="about" content="charset=utf-8">',
    ],
)
@pytest.mark.parametrize(
    "declaration",
    [
        "<meta charset=koi8-r>",
        '<meta name="type" http-equiv="Content-Type" content="text/html; charset=koi8-r">',
        '<meta http-equiv="Content-Type content="text/html; charset=koi8-r">',
        '<meta name=x charset="koi8-r">',
    ],
)
def test_a_description_declares_no_charset(other: str, declaration: str) -> None:
    """A <meta> that says something of the page may name a charset in its text; an unknown charset is none."""
    page = f"<html><head>{other}{declaration}</head><body>{RUSSIAN}</body></html>"

    assert decode_content(page.encode("koi8-r")) == Decoded(page, "koi8-r")


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("iso-8859-1http-equivContent-Type", "cp1252"),
        ("windows-1251http-equiv=", "cp1251"),
        ("_iso-2022-jp$ESC", "iso2022_jp"),
        ("utf-8*fr", "utf-8"),
        ("utf8mb4", "utf-8"),
        ("iso-88592", "iso8859-2"),
        ("8859-15", "iso8859-15"),
        ("iso-8859-8-i", "iso8859-8"),
        ("cp950", "big5hkscs"),
        ("koi-8r", "koi8-r"),
        ("iso-latin-1", "cp1252"),
        ("cp12521", None),
        ("iso-8859-17", None),
        ("utf-80", None),
        ("utf-7", None),
    ],
)
def test_labels_behind_which_something_stands(label: str, codec: str | None) -> None:
    """As programs write them that lose a quotation mark or a blank, and in rare spellings."""
    assert canonical_charset(label) == codec
