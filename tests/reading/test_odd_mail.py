"""Mail as programs of lists and old clients leave it: footers below base64, envelopes without a date."""

import binascii

import pytest

from nddup.reading.mail_cutting import starts_as_mail
from nddup.reading.outcomes import Record
from nddup.reading.records import record_text
from tests.reading.test_mail import one, read

ENVELOPE = "From a@b.c Thu Jan  1 00:00:00 1970"
NAMED = ["attachment:", "a", "b.bin"]
SHORT = "Danke schön!"
FOOTER = "_______________________________________________\nlist mailing list\nhttp://lists.example.org/list\n"


def test_a_footer_may_be_longer_than_a_text_in_base64() -> None:
    """Programs of lists put it below, in plain text, however short the text is; words without base64 stay words."""
    header = (
        "From: a@b.c\nMessage-ID: <1@x>\nContent-Type: text/plain; charset={}\nContent-Transfer-Encoding: base64\n\n"
    )
    for charset, text in (("utf-8", SHORT), ("iso-8859-1", SHORT + "\n"), ("utf-8", "yes"), ("utf-8", SHORT * 9)):
        encoded = binascii.b2a_base64(text.encode(charset), newline=False).decode()
        found = one((header.format(charset) + f"{encoded}\n{FOOTER}").encode())
        assert record_text(found).split("\n") == [text.strip(), *FOOTER.strip().split("\n")]
    for words in (
        "Dear\nall, see below.\n",
        "Hello\n\nthere, all of you.\n",
        "abcd" * 9 + "e\nand more than that is here, of course.\n",
    ):
        found = one((header.format("utf-8") + words).encode())
        assert record_text(found).split() == words.split()


@pytest.mark.parametrize("envelope", ["From - ", "From -", "From 1844347792267117879@xxx", "From a.b@c.d ", "From "])
@pytest.mark.parametrize("name", ["a.mbox", "a.txt"])
def test_envelopes_without_a_date_divide_a_mailbox_that_begins_with_one(envelope: str, name: str) -> None:
    """Whatever its name; lines of a text that begin with From, also before a colon, are none."""
    letter = "{0}\nFrom: a@b.c\nMessage-ID: <{1}@x>\nSubject: s\n\none\n\nFrom Russia with love\nYear: 1963\n\n"
    data = letter.format(envelope, 1) + letter.format(envelope, 2)

    assert starts_as_mail(data.encode(), name)
    assert [mail.doc_id for mail in read(data.encode()) if isinstance(mail, Record)] == ["1@x", "2@x"]
    assert not starts_as_mail(f"{envelope}\nhere: a text, not a letter\n".encode(), "a.txt")


@pytest.mark.parametrize(
    ("name", "encoding"), [("Frösche.txt", "utf-8"), ("Frösche.txt", "iso-8859-1"), ("отчёт за ноябрь.txt", "cp1251")]
)
def test_names_of_attachments_may_be_raw_bytes(name: str, encoding: str) -> None:
    """Of any charset; so may be what divides the parts, as programs write the title of a newsletter there."""
    parts = (f"Content-Type: text/plain{more}\n\n{text}\n" for more, text in ((f'; name="{name}"', "a"), ("", "b")))
    mail = f'From: a@b.c\nContent-Type: multipart/mixed; boundary="{name}"\n\n'
    mail += "".join(f"--{name}\n{part}" for part in parts) + f"--{name}--\n"

    assert record_text(one(mail.encode(encoding))) == f"attachment: {name}\na\nb"


def test_line_ends_that_were_written_twice_are_one_each() -> None:
    """As those of a letter with the line ends of mail that a program on Windows wrote as a text."""
    part = "--b\nContent-Type: text/plain\n\none\n\ntwo\n--b--\n"
    letter = f'Message-ID: <{{}}@x>\nFrom: a@b.c\nSubject: s\nContent-Type: multipart/mixed; boundary="b"\n\n{part}'
    alone, box = letter.format(1), "".join(f"{ENVELOPE}\n{letter.format(number)}\n" for number in (1, 2))
    for data, ids in ((alone, ["1@x"]), (box, ["1@x", "2@x"])):
        found = [mail for mail in read(data.replace("\n", "\r\r\n").encode()) if isinstance(mail, Record)]
        assert [mail.doc_id for mail in found] == ids
        assert {record_text(mail) for mail in found} == {"s\none\n\ntwo"}


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1"])
def test_files_by_yenc_are_attachments(encoding: str) -> None:
    """As Usenet sends them: bytes of any value between two lines; they do not change how the text is decoded."""
    block = (
        b"=ybegin part=1 line=128 size=900 name=a b.bin\r\n=ypart begin=1 end=900\r\n%s\r\n=yend size=900 pcrc32=1\r\n"
    )
    block %= bytes(byte for byte in range(1, 256) if byte not in b"\r\n=") * 3
    head = b"From: a@b.c\r\nMessage-ID: <1@x>\r\nSubject: s\r\nLines: 9\r\n\r\n"
    text = "Schöne Grüße\r\n".encode(encoding)
    found = one(head + text + block + b"and\r\n" + block + b"end")
    assert record_text(found).split() == ["s", "Schöne", "Grüße", *NAMED, "and", *NAMED, "end"]
    assert (found.unread.parts, found.replaced) == (2, 0)
    prose = b"=ybegin is a line of yEnc\r\n=ybegin line=1 size=1 name=x\r\nnever ends\r\n"
    assert record_text(one(head + prose)).split() == ["s", *prose.decode().split()]
