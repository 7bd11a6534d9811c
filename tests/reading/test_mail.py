"""E-mail: messages of Python's own writer are read again; mbox files are cut where Python's reader cuts them."""

import binascii
import io
import mailbox
from email.message import EmailMessage
from email.mime.application import MIMEApplication
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading.mail import count_messages, read_mail, read_message
from nddup.reading.mail_cutting import cut_mail, starts_as_mail
from nddup.reading.outcomes import Record, Reject
from nddup.reading.records import content_fingerprint, record_text
from nddup.reading.streams import Expanded

ENVELOPE = b"From a@x.example Thu Jan  1 00:00:00 2024\n"
RUSSIAN = "Привет, это письмо о договоре, который мы подписали вчера вечером"


def message(number: int, body: str = "Straße 5") -> EmailMessage:
    """Return a message with two forms of its body and an attachment."""
    made = EmailMessage()
    made["Subject"], made["From"], made["Message-ID"] = "Договор № 5", "a@x.example", f"<m{number}@x>"
    made.set_content(body)
    made.add_alternative("<p>the same, as a page</p>", subtype="html")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="contract 5.pdf")
    return made


def cut(data: bytes, most: int = 1 << 20) -> list[bytes | Reject]:
    return list(cut_mail(Expanded(io.BytesIO(data), "", None), max_record=most))


def read(data: bytes) -> list[Record | Reject]:
    return list(read_mail(Expanded(io.BytesIO(data), "", None), source="a.mbox", max_record=1 << 20))


def one(data: bytes) -> Record:
    """Return the record of a message, without those inside it."""
    found = next(read_message(data, made_up="a.eml#1"))
    assert isinstance(found, Record)
    return found


def multipart(kind: str, *parts: MIMEText | MIMEMultipart | MIMEMessage | MIMEApplication) -> MIMEMultipart:
    made = MIMEMultipart(kind)
    for part in parts:
        made.attach(part)
    return made


def test_a_message_is_its_subject_its_body_and_the_names_of_attachments() -> None:
    """The plain form of the body is taken; the attachment is named, counted and not read."""
    found = one(bytes(message(1)))

    assert found.doc_id == "m1@x"
    assert record_text(found).split("\n") == ["Договор № 5", "Straße 5", "attachment: contract 5.pdf"]
    assert (found.unread.size, found.unread.parts) == (4, 1)


def test_all_texts_of_a_message_are_read_in_order() -> None:
    """Text after a picture, an attached patch and a page are text; a picture is not."""
    patch = MIMEText("patch words", "x-patch")
    patch.add_header("Content-Disposition", "attachment", filename="a.patch")
    made = multipart(
        "mixed", MIMEText("one"), MIMEApplication(b"\x89PNG", "png"), MIMEText("<p>two</p>", "html"), patch
    )

    found = one(made.as_bytes())

    assert record_text(found).split() == ["one", "two", "attachment:", "a.patch", "patch", "words"]
    assert found.unread.parts == 1


@pytest.mark.parametrize(
    ("plain", "page", "words"),
    [
        ("plain words", "<p>page words</p>", "plain words"),
        (" \n", "<p>page</p>", "page"),
        ("", "<p>page</p>", "page"),
        ("see the page", "<p>" + "page " * 30 + "</p>", "page " * 30),
    ],
)
def test_the_better_form_is_read(plain: str, page: str, words: str) -> None:
    """The plain form is read, unless it is empty or a mere note beside a page; both count for the fingerprint."""
    forms = (MIMEText(plain), MIMEText(page, "html"))
    found = one(multipart("alternative", *forms).as_bytes())
    other = one(multipart("alternative", MIMEText(plain), MIMEText(page + "!", "html")).as_bytes())

    assert record_text(found).split() == words.split()
    assert found.unread.parts == 0
    assert content_fingerprint(found) != content_fingerprint(other)


@pytest.mark.parametrize("header", ["", "; charset=us-ascii", "; charset=unknown-8bit", "; charset=none-such"])
@pytest.mark.parametrize("codec", ["utf-8", "cp1251", "koi8-r"])
def test_charsets_are_found_as_for_pages(header: str, codec: str) -> None:
    """Undeclared, wrong and unknown charsets of a body and of a raw subject are found from the bytes."""
    head = b"Subject: " + RUSSIAN.encode(codec) + f"\nContent-Type: text/plain{header}\n\n".encode()

    found = one(head + (RUSSIAN * 3).encode(codec))

    assert record_text(found) == f"{RUSSIAN}\n{RUSSIAN * 3}"
    assert found.replaced == 0


def test_a_page_of_utf_8_declared_latin_is_utf_8() -> None:
    """Bytes that are valid UTF-8 are hardly ever text of a declared charset of one byte a character."""
    found = one(b"Content-Type: text/html; charset=iso-8859-1\n\n<p>" + RUSSIAN.encode() + b"</p>")

    assert record_text(found).strip() == RUSSIAN


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("=?utf-8?q?=D0=9F=D1=80?= =?utf-8?q?=D0=B8=D0?=\n =?utf-8?q?=B2=D0=B5=D1=82?= again", "Привет again"),
        ("=?koi8-r?B?8NLJ18XU?=", "Привет"),
        ("=?utf-8*ru?b?0J/RgNC40LLQtdGC?=", "Привет"),
        ("a =?none-such?q?b?= c", "a b c"),
        ("=?utf-8?q?a_b?=", "a b"),
        ("=?utf-7?q?Fr+APY-sche?=", "Frösche"),
        ("=?utf-8?x?a?= ?=", "=?utf-8?x?a?= ?="),
        ("=?utf-8?Q?Hello world caf=C3=A9?=", "Hello world café"),
        ("=?UTF-8?Q?What are you=3F Who is it??=", "What are you? Who is it?"),
        ("=?iso-8859-1?Q?news PISSE LP pr?=\n =?iso-8859-1?Q?e-order?=", "news PISSE LP pre-order"),
        ("=?utf-8?Q?f=C3=B6=C3=B6\tbär?=", "föö bär"),
        ("=?utf-8?B?0J/RgNC4\n 0LLQtdGC?= =?utf-8?b?IQ?=", "Привет!"),
        ("=?utf-8?q?open =?utf-8?q?b?= c?", "=?utf-8?q?open b c?"),
        ("Re: \x1b$BF|K\\8l\x1b(B 5", "Re: 日本語 5"),
    ],
)
def test_encoded_words(field: str, text: str) -> None:
    """Adjacent words are one text, although a character may be divided between them; what is none stays."""
    assert record_text(one(f"Subject: {field}\n\nx".encode())) == f"{text}\nx"


FOOTER = "\n-- \nlist mailing list, https://list.example/"


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("base64 ", "UHJpdmV0", "Privet"),
        ('"Base64"; x', "UHJpdmV0", "Privet"),
        ("base64 (RFC 2045)", "UHJpdmV0", "Privet"),
        ("Quoted-Printable ", "Stra=C3=9Fe", "Straße"),
        ("base64", "UHI=\naXZldA==\n", "Privet"),
        ("base64", f"UHJpdmV0IHRvIHlvdSBhbGwsIHdobyByZWFkIHRoaXMgaW4gdGhlIGV2ZW5pbmc={FOOTER}",
         f"Privet to you all, who read this in the evening\n-- \n{FOOTER[5:]}"),
        ("base64", "Straße 5, not encoded at all", "Straße 5, not encoded at all"),
        ("base64", "UHJpdmV0U", "Privet"),
    ],
)  # fmt: skip
def test_an_encoding_is_known_by_its_word_and_its_bytes(encoding: str, body: str, words: str) -> None:
    """Blanks and comments after it change nothing; pieces with padding, a footer, and what is not encoded are read."""
    header = f"Message-ID: <1@x>\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n"
    found = one((header + body).encode())
    assert (found.fields, found.replaced, found.unread.parts) == ((words,), 0, 0)


@pytest.mark.parametrize(
    "label", ["; charset=utf-8", "", "; charset*=us-ascii'en'utf-8", "; charset=idna", "; charset=\0"]
)
@pytest.mark.parametrize("encoding", ["8bit", "quoted-printable", "7bit"])
def test_bytes_beyond_ascii_are_those_of_the_text(label: str, encoding: str) -> None:
    """Whatever the part says of them: their charset, in a parameter of RFC 2231 too, or that there are none."""
    head = f"Content-Type: text/plain; charset{label}\nContent-Transfer-Encoding: {encoding}\n\n"
    body = RUSSIAN.replace(" ", "=20", 1) + " =\nсегодня" if encoding == "quoted-printable" else f"{RUSSIAN} сегодня"

    assert record_text(one(f"{head}{body}\n".encode())) == f"{RUSSIAN} сегодня"


def test_a_type_without_a_semicolon_is_that_type() -> None:
    """The parameter behind it counts too."""
    page = f"Content-Type: text/html charset=koi8-r\n\n<p>{RUSSIAN[:6]}</p>\n".encode("koi8-r")

    assert record_text(one(page)).strip() == RUSSIAN[:6]


def test_two_messages_that_are_not_read_differ_by_their_bytes() -> None:
    """The fingerprint covers each byte of what lies too deep, or is of no known type."""
    texts = [f"Content-Type: message/partial; id=a\n\nSubject: x\n\n{text}\n".encode() for text in ("да", "но")]

    assert content_fingerprint(one(texts[0])) != content_fingerprint(one(texts[1]))


def test_styles_of_a_page_in_one_file_are_no_text() -> None:
    """Of a page saved as MHTML the text is read; a style or a script beside it is counted."""
    saved = multipart("related", MIMEText("<p>one</p>", "html"), MIMEText("p { color: red }", "css"))
    saved["Subject"] = "Page"
    mixed = multipart("mixed", MIMEText("see"), MIMEText("red", "css"))

    assert record_text(one(bytes(saved))).split() == ["Page", "one"]
    assert one(bytes(saved)).unread.parts == 1
    assert record_text(one(bytes(mixed))).split() == ["see", "red"]


@pytest.mark.parametrize(
    ("header", "body", "words"),
    [
        ('Content-Type: text/plain; format="Flowed"; DelSp=YES', "lon \ng wor \n d\n> a \n> b\n-- \nme", "long word"),
        ("Content-Type: text/plain; format=flowed", "long \nword\n> a \n> b\n-- \nme", "long word"),
        ("Content-Transfer-Encoding: quoted-printable", "lon= \t\ng word\n> a=20\n> b\n-- =\n\nme", "long word"),
    ],
)
def test_lines_go_on_as_their_writer_says(header: str, body: str, words: str) -> None:
    """A word that is divided by a soft break is one, by RFC 3676 and 2045; a quotation and a signature are apart."""
    found = one(f"Subject: s\nMIME-Version: 1.0\n{header}\n\n{body}\n".encode())
    assert record_text(found).split() == ["s", *words.split(), ">", "a", ">", "b", "--", "me"]


@pytest.mark.parametrize(
    ("kind", "body", "words", "unread"),
    [
        ("richtext", "This is <bold>a part</bold>", ["This", "is", "a", "part"], 0),
        ("richtext", "{\\rtf1\\ansi a part}", [], 1),
        ("plain", "%PDF-1.4 obj", [], 1),
    ],
)
def test_the_bytes_of_a_part_decide_whether_it_is_text(kind: str, body: str, words: list[str], unread: int) -> None:
    """Text with the marks of RFC 1341 is read; documents that are no text are not, whatever type they have."""
    found = one(MIMEText(body, kind).as_bytes())
    assert (record_text(found).split(), found.unread.parts) == (words, unread)


@pytest.mark.parametrize("other", ["calendar", "x-notes"])
def test_a_form_of_another_type_comes_last(other: str) -> None:
    """An invitation is its text, not its calendar, which has more words."""
    plain, calendar = MIMEText("We meet at five"), MIMEText("BEGIN:VCALENDAR SUMMARY:meeting " * 20, other)
    found = [one(bytes(multipart("alternative", *forms))) for forms in ((plain, calendar), (calendar, plain))]
    assert [record.fields for record in found] == [("We meet at five",)] * 2
    alone = one(bytes(multipart("alternative", MIMEText(" "), calendar)))
    assert "meeting" in str(alone.fields)


@pytest.mark.parametrize("lead", [b"\xef\xbb\xbf", b"\n", b" \r\n\r\n"])
def test_marks_and_blank_lines_may_stand_before_a_message(lead: bytes) -> None:
    """A message, and an mbox, is read as without them; the pieces are still the file."""
    plain = bytes(message(1))
    assert starts_as_mail(lead + plain, "a")
    assert content_fingerprint(one(lead + plain)) == content_fingerprint(one(plain))
    box = ENVELOPE + plain + b"\n" + ENVELOPE + bytes(message(2))
    assert starts_as_mail(lead + box, "a")
    assert b"".join(piece for piece in cut(lead + box) if isinstance(piece, bytes)) == lead + box
    assert [found.doc_id for found in read(lead + box)] == ["m1@x", "m2@x"]


def test_what_stands_outside_the_parts_is_counted() -> None:
    """Before the first and after the last; the usual notice says nothing, and the rest tells contents apart."""
    mail = multipart("mixed", MIMEText("one"))
    read_whole = one(bytes(mail))
    mail.preamble = "This is a multi-part message in MIME format."
    noticed = one(bytes(mail))
    mail.epilogue = "a footer\n"
    outside = one(bytes(mail))

    assert read_whole.unread == noticed.unread
    assert (outside.unread.size, outside.unread.parts) == (8, 1)
    assert content_fingerprint(outside) != content_fingerprint(noticed) == content_fingerprint(read_whole)


def test_a_folded_boundary_and_one_that_does_not_occur() -> None:
    """A boundary may be folded; where none is found, the parts are text as they stand, and nothing is lost."""
    body = b"\n\n--a b\nContent-Type: text/plain\n\none\n--a b--\n"

    folded = one(b'Content-Type: multipart/mixed; boundary="a\n b"' + body)
    other = one(b'Content-Type: multipart/mixed; boundary="c"' + body)

    assert record_text(folded) == "one"
    assert "one" in record_text(other).split()


def test_messages_inside_a_message_are_records_of_their_own() -> None:
    """They are called after the message that holds them, which covers them by its fingerprint."""

    def outer(text: str) -> list[Record | Reject]:
        inner = multipart("mixed", MIMEText(text), MIMEMessage(MIMEText("deep")))
        made = multipart("mixed", MIMEText("see below"), MIMEMessage(inner), MIMEMessage(MIMEText("second")))
        made["Message-ID"] = "<m@x>"
        return list(read_message(made.as_bytes(), made_up=""))

    found, other = outer("inner"), outer("other")

    records = [record for record in found if isinstance(record, Record)]
    assert [(record.doc_id, record.parent) for record in records] == [
        ("m@x", None), ("m@x/1", "m@x"), ("m@x/1/1", "m@x/1"), ("m@x/2", "m@x"),
    ]  # fmt: skip
    assert record_text(records[2]) == "deep"
    assert records[0].fields == other[0].fields if isinstance(other[0], Record) else False
    assert content_fingerprint(records[0]) != content_fingerprint(other[0])  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["mixed", "digest", "Digest"])
def test_messages_are_counted_without_reading_them(kind: str) -> None:
    """As many as are read: those inside others too, also where a digest holds them and names no type."""
    part = b"--b\n\nSubject: one\n\ntext\n"
    named = part.replace(b"--b\n", b"--b\nContent-Type: MESSAGE/rfc822\n")
    made = [b'Content-Type: multipart/%s; boundary="b"\n\n' % kind.encode() + inside * 2 + b"--b--\n"
            for inside in (part, named)]  # fmt: skip

    counts = [count_messages(data) for data in (*made, b"Subject: one\n\ntext\n")]

    assert counts == [1 if kind == "mixed" else 3, 3, 1]
    assert counts[:2] == [sum(1 for _ in read_message(data, made_up="")) for data in made]


def test_a_message_without_an_id_names_those_inside_it_by_its_place() -> None:
    """Its made-up id is that of its file and the number of the record."""
    data = ENVELOPE + b"Subject: a\n\nb\n\n" + ENVELOPE + multipart("mixed", MIMEMessage(MIMEText("in"))).as_bytes()

    found = read(data)

    assert [(one.doc_id, getattr(one, "parent", None)) for one in found] == [
        (None, None), (None, None), ("a.mbox#2/1", "a.mbox#2"),
    ]  # fmt: skip


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_message_of_an_mbox_and_of_a_file_is_one_content(line_end: bytes) -> None:
    """Envelope, quoted From, line ends and the blank line after it are not content; another attachment is."""
    body = multipart("mixed", MIMEText("From here\n>From there\n"), MIMEApplication(b"%PDF 1", "pdf")).as_bytes()
    other = body.replace(b"JVBERiAx", b"JVBERiAy")
    boxed = ENVELOPE + body.replace(b"\n>From", b"\n>>From").replace(b"\nFrom", b"\n>From") + b"\n"

    prints = [content_fingerprint(one(data.replace(b"\n", line_end))) for data in (body, boxed, other)]

    assert prints[0] == prints[1] != prints[2]


def test_an_mbox_is_cut_where_python_cuts_it(tmp_path: Path) -> None:
    """The pieces are the file, and as many as Python's reader finds; a body line that begins with From is quoted."""
    box = mailbox.mbox(tmp_path / "all.mbox")
    for number in range(5):
        box.add(message(number, "one\n\nFrom here on\n"))
    box.flush()
    data = (tmp_path / "all.mbox").read_bytes()

    pieces = cut(data)

    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == data
    assert [one.doc_id for one in read(data)] == [f"m{number}@x" for number in range(5)]


@pytest.mark.parametrize(
    "line",
    [
        b"From a@x Thu Jan  1 00:00:00 2024",
        b"From a at x.example  Thu Jan  1 00:00:00 2024",
        b"From - Thu Jan 01 00:00:00 2024",
        b"From MAILER-DAEMON Thu Jan 1 00:00:00 2024",
        b"From a@x Thu, 1 Jan 2024 00:00:00 +0100",
        b"From a@x  Thu Jan  1 00:00 CET 2024",
        b"From ???@??? Mon Jan 01 00:00:00 1997",
        b'From "a b"@x.example Thu Jan  1 00:00:00 2024',
        b"From a@x 2024-01-01 00:00:00 +0100",
        b"From a@x 2024-01-01T00:00:00Z",
        b"From Anna B. <a@x> Thu Jan  1 00:00:00 2024",
    ],
)
@pytest.mark.parametrize("blank", [b"\n", b""])
def test_an_envelope_begins_a_message(line: bytes, blank: bytes) -> None:
    """With or without a blank line before it."""
    box = line + b"\nSubject: a\n\none\n" + blank + line + b"\nSubject: b\n\ntwo\n"

    assert cut(box) == [box[: box.rindex(line)], box[box.rindex(line) :]]


@pytest.mark.parametrize(
    "line",
    [
        b"From my point of view", b"From all of us here,", b"From a@x Thu Jan  1 00:00:00 2024\nno field",
        b"From 2024-01-01 on", b"From 10:00 to 12:00",
    ],
)  # fmt: skip
def test_other_lines_that_begin_with_from_are_text(line: bytes) -> None:
    """Without a date, or a field after it, such a line begins no message, although a blank line precedes it."""
    box = ENVELOPE + b"Subject: a\n\none\n\n" + line + b"\nSubject:\n"[line.endswith(b"field") * 10 :]

    assert cut(box) == [box]


def test_a_long_message_is_one_reject_and_the_next_is_read() -> None:
    """A message longer than `input.max_record` is not held in memory as a whole."""
    long, short = ENVELOPE + b"Subject: a\n\n" + b"x\n" * (3 << 20) + b"\n", ENVELOPE + b"Subject: b\n\nshort\n"

    first, *rest = cut(long + short, most=1 << 20)

    assert isinstance(first, Reject)
    assert (first.reason, first.detail.partition(" ")[0]) == ("too large", f"{len(long):,}")
    assert rest == [short]


PIECES = [
    ENVELOPE, b"\n", b"\r\n", b"Subject: =?utf-8?b?0J8=?=\n", b"x", b" ", b"--b\n", b"--b--\n", b"\xff\xe0",
    b"Content-Type: multipart/mixed; boundary=b\n", b"Content-Type: message/rfc822\n", b"Content-Type: text/html\n",
    b"Content-Transfer-Encoding: base64\n", b"Content-Type: multipart/alternative; boundary=b\n",
    b"Content-Disposition: attachment; filename*=utf-8''%D0%9F\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=16))
def test_the_pieces_are_the_file(parts: list[bytes]) -> None:
    """Whatever the bytes, nothing is lost or added, and reading never raises."""
    data = b"".join(parts)
    pieces = cut(data)

    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == data
    for found in read(data):
        assert isinstance(found, Reject) or record_text(found).encode() is not None


def test_a_message_that_cannot_be_divided_is_one_text() -> None:
    """Multiparts too deep for Python's parser, and too many boundaries, cost one text and are counted."""
    deep = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (depth, depth) for depth in range(2_000)
    )
    wide = b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 30_000

    for data in (deep, wide):
        found = one(data)
        assert found.unread.parts == 1
        assert record_text(found).startswith("Content-Type")


HEADER = b"Received: by x\nMessage-ID: <a@x>\nFrom: a@x\nSubject: a\n\nb"


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("1700.M1P1.host:2,S", HEADER, True),
        ("Inbox", ENVELOPE + HEADER, True),
        ("a.txt", b"From: A <a@x>\nTo: b@x\nDate: Thu, 1 Jan 2024\n\nb", True),
        ("a.eml", b"Subject: a\n\nb", True),
        ("a.eml", b"\x89PNG\r\n\x1a\n\0", False),
        ("a.txt", b"Subject: a\n\nb", False),
        ("53366", b"From: a@x (A)\nSubject: a\nOrganization: b\n\tc\nLines: 3\n\nb", True),
        ("a.txt", b"Subject: a\nOrganization: b\nLines: 3\n\nb", False),
        ("a.txt", b"From: Bob\nTo: Alice\nSubject: memo\n\nb", False),
        ("a.md", b"---\ntitle: a\ndate: b\n---\n", False),
        ("a.txt", b"Note: one\nFrom: two\nprose\n", False),
        ("a.txt", b"Received: from x\n by y\nContent-Type: text/plain\n\n", True),
        ("a.txt", b"Received: from x\nReturn-Path: <>\n\n", True),
        ("a.txt", b"Received: with thanks\n\n", False),
        ("a.txt", b"From my point of view\nSubject: a\n", False),
        ("a", b"WARC/1.0\r\nWARC-Type: response\r\n", False),
        ("a", b"", False),
    ],
)
def test_what_begins_as_mail(name: str, head: bytes, expected: bool) -> None:  # noqa: FBT001
    """E-mail is known by its header, whatever its name; a name alone makes no mail."""
    assert starts_as_mail(head, name) is expected


@pytest.mark.parametrize(
    "header",
    [
        b"Subject: " + b"=?utf-8?q?a?= " * 60_000,
        b"Subject: " + b"=?none-such?b?/w==?=\n " * 40_000,
        b"Content-Type: text/plain; " + b'"; ' * 300_000,
        b"Content-Type: text/plain; " + b"".join(b"name*%d=a; " % at for at in range(80_000)),
        b"Content-Type: text/plain; name*" + b"9" * 6_000 + b"=a",
        b"Content-Type: text/plain; charset=punycode",
    ],
    ids=["words", "unknown charsets", "quotes", "continuations", "a long number", "punycode"],
)
def test_hostile_headers_are_read_within_bounds(header: bytes) -> None:
    """Python's own reader takes minutes or gigabytes for these; what is cut of a subject is counted."""
    found = one(header + b"\n\n" + b"word " * 50_000)

    assert record_text(found).split()[-2:] == ["word", "word"]
    assert (found.unread.parts == 1) is header.startswith(b"Subject")


def test_fields_of_the_header_are_columns() -> None:
    """On one line and decoded, the date as a time in UTC; a message inside another has its own; none is None."""
    inner = b"Message-ID: <i>\nSubject: in\nDate: nonsense\n\ntext of it"
    head = b"Message-ID: <o>\nsubject: =?utf-8?b?0LbRg9C6?=\n more\nDATE: Fri, 31 May 2024 12:00:00 +0200\n"
    data = (
        head
        + b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: message/rfc822\n\n"
        + inner
        + b"\n--x--\n"
    )
    found = list(read_message(data, made_up="", policy=("Date", "Subject", "X-Box")))
    assert [one.policy for one in found if isinstance(one, Record)] == [
        ("2024-05-31T10:00:00Z", "жук more", None), ("nonsense", "in", None),
    ]  # fmt: skip
    plain = list(read_message(data, made_up=""))
    assert list(map(content_fingerprint, plain)) == list(map(content_fingerprint, found))  # type: ignore[arg-type]


BODY = b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nSGVsbG8gYm9keSB3b3Jkcw==\n"


@pytest.mark.parametrize(
    "declared",
    [b'; boundary="_XX_"', b"", b"; boundary='XX'", b"; boundary=XX (a comment)", b'; boundary="A"; boundary="XX"'],
)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_parts_are_divided_at_the_boundary_that_stands_there(declared: bytes, line_end: bytes) -> None:
    """A header without a boundary, or with another one, as some programs write it; the parts are decoded."""
    inner = b"Content-Type: multipart/alternative%s\n\n--XX\n%s--XX--\n" % (declared, BODY)
    outer = b"Subject: s\nContent-Type: multipart/mixed; boundary=other\n\n--YY\n%s--YY\n%s--YY--\n" % (inner, BODY)

    for data in (b"Subject: s\n" + inner, outer):
        words = record_text(one(data.replace(b"\n", line_end))).split()
        assert words == ["s", *["Hello", "body", "words"] * (1 + (data is outer))]


def test_a_multipart_of_bytes_without_boundaries_is_decoded() -> None:
    """It is one text, in the encoding that its header names."""
    head = b"Subject: s\nContent-Type: multipart/mixed; boundary=b\nContent-Transfer-Encoding: base64\n\n"

    assert record_text(one(head + b"SGVsbG8gYm9keSB3b3Jkcw==\n")).split() == ["s", "Hello", "body", "words"]


def test_parts_inside_parts_without_end_are_read_within_bounds() -> None:
    """Each part that has no boundary costs a copy of what is in it, so only some are divided."""
    deep = b"".join(b"Content-Type: multipart/mixed\n\n--b%d\n" % at for at in range(3_000))

    assert "word" in record_text(one(b"Subject: s\n" + deep + b"Content-Type: text/plain\n\nword\n"))


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        (b"Subject: in=20ner\n\nthe bo=\ndy=2E", "in ner the body."),
        (b"Subject: s\nContent-Type: text/plain; charset=3Dutf-8\n\ncaf=C3=A9 and =\nmore", "s café and more"),
        (b"Subject: s\nContent-Type: text/plain; charset=utf-8\n\na=3D1", "s a=3D1"),
        (
            b'Content-Type: multipart/mixed; boundary=3D"=3Db"\n\n--=3Db\nContent-Type: text/html\n\n<p id=3Da>x</p>\n',
            "x",
        ),
    ],
)
def test_a_message_that_is_quoted_whole_is_decoded(inner: bytes, words: str) -> None:
    """Some programs encode an attached message, though no encoding is allowed; where it is not, it stays as it is."""
    head = b"Subject: o\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n"
    data = head + b"Content-Transfer-Encoding: quoted-printable\n\n" + inner + b"\n--b--\n"

    _, found = read(data)

    assert isinstance(found, Record)
    assert record_text(found).split() == words.split()


def test_a_collection_of_usenet_is_cut_at_its_numbers() -> None:
    """Mailboxes made from Google Groups have a number where others have a sender and a date."""
    first = b"From -1234567890123456789\nSubject: one\n\nFrom 12 to 15\nNote: no envelope\n\n"
    second = b"From 1234567890123\nSubject: two\n\nb2\n"

    assert starts_as_mail(first, "a.mbox")
    assert cut(first + second) == [first, second]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_message_of_apple_mail_ends_after_its_bytes(line_end: bytes) -> None:
    """The first line of a file .emlx is their number; flags in XML follow them."""
    inside = b"Subject: one%sMessage-ID: <a@x>%s%sthe body%s".replace(b"%s", line_end)
    data = b"%d        \n%s<?xml version='1.0'?><plist><key>flags</key></plist>" % (len(inside), inside)

    assert starts_as_mail(data, "5.emlx")
    assert not starts_as_mail(data, "5.txt")
    assert (one(data).doc_id, record_text(one(data))) == ("a@x", "one\nthe body")


def test_a_message_id_is_what_its_brackets_hold() -> None:
    """A relay may write more behind them."""
    assert one(b"Message-ID: <a@x> (added by a relay)\n\nb").doc_id == "a@x"
    assert one(b"Message-ID: a@x\n\nb").doc_id == "a@x"
    assert one(b"Message-ID:\n <a@x>\n\nb").doc_id == "a@x"


PATCH = b"From %s Mon Sep 17 00:00:00 2001\nFrom: A <a@x>\nSubject: [PATCH] a\n\nlog\n" % (b"0123456789" * 4)


@pytest.mark.parametrize("odd", [PATCH, b"From \nFrom: a@x\nSubject: a\n\none\n"])
def test_odd_envelopes_begin_messages_in_a_file_of_such(odd: bytes) -> None:
    """A patch of git, and an envelope without sender and date, are text in a message of a mailbox of others."""
    other = ENVELOPE + b"Subject: b\n\nhere it is\n\n"

    assert cut(odd + odd) == [odd, odd]
    assert cut(odd + other + odd) == [odd, other, odd]
    assert cut(other + odd + other) == [other + odd, other]
    assert starts_as_mail(odd, "a.mbox")
    assert starts_as_mail(odd, "a") is odd.startswith(b"From 0")


def test_a_blank_in_the_time_of_an_envelope() -> None:
    """As a filter left it in some mailboxes."""
    first, second = (
        b"From a@x  Fri Nov 25 %s 2016\nSubject: b\n\none\n" % time for time in (b"16:18:08", b"16: 18:08")
    )

    assert cut(first + second) == [first, second]


def sent(name: str, data: bytes, *, stripped: bool = False) -> str:
    """Return a file by uuencode; `stripped`: blanks for zeros, of which a relay took those at ends of lines."""
    rows = [binascii.b2a_uu(data[at : at + 45], backtick=not stripped).decode() for at in range(0, len(data), 45)]
    rows = [row.rstrip(" \n") + "\n" if stripped else row for row in rows]
    return f"begin 644 {name}\n{''.join(rows)}{'' if stripped else '`'}\nend\n"


@pytest.mark.parametrize("stripped", [False, True])
def test_a_file_inside_a_text_is_an_attachment(stripped: bool) -> None:  # noqa: FBT001
    """What programs sent before MIME: the file is named and counted, its bytes count for the fingerprint alone."""
    data = bytes(range(256)) * 3 + bytes(7)
    made, other = (
        one(b"Subject: s\n\nbefore\n" + sent("a b.bin", some, stripped=stripped).encode() + b"after\n")
        for some in (data, data[::-1])
    )

    assert record_text(made).split() == ["s", "before", "attachment:", "a", "b.bin", "after"]
    assert (made.unread.parts, made.unread.size) == (1, len(data))
    assert content_fingerprint(made) != content_fingerprint(other)


@pytest.mark.parametrize(
    "text", ["begin 644 it\nand so on\nend", "begin 644 a\nM1\nend of it", "begin 644 a\n#8F,!8F,!8F,!\nend"]
)
def test_what_is_no_file_inside_a_text(text: str) -> None:
    """Prose, and lines that are longer than they say, stay text."""
    assert record_text(one(b"Subject: s\n\n" + text.encode())) == f"s\n{text}"
