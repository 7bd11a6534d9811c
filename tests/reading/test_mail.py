"""E-mail: messages of Python's own writer are read again; mbox files are cut where Python's reader cuts them."""

import io
import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading.containers import container_head, cut_mail, parse_mail
from nddup.reading.outcomes import Record, Reject
from nddup.reading.records import record_text
from nddup.reading.streams import Expanded


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


def test_a_message_is_its_subject_its_body_and_the_names_of_attachments() -> None:
    """The plain form of the body is taken; the attachment is named and not read."""
    found = parse_mail(bytes(message(1)))

    assert isinstance(found, Record)
    assert found.doc_id == "m1@x"
    assert record_text(found).split("\n") == ["Договор № 5", "Straße 5", "", "attachment: contract 5.pdf"]


def test_a_body_in_markup_and_one_of_unknown_charset_are_read() -> None:
    """Markup is removed from a body that is a page; bytes that no charset explains are replaced, not lost."""
    page = parse_mail(b"Subject: a\nContent-Type: text/html\n\n<p>one</p><p>two</p>")
    odd = parse_mail(b"Subject: a\nContent-Type: text/plain; charset=none-such\n\nabc \xff")

    assert isinstance(page, Record)
    assert isinstance(odd, Record)
    assert record_text(page).split() == ["a", "one", "two"]
    assert record_text(odd).startswith("a\nabc ")


def test_an_mbox_is_cut_where_python_cuts_it(tmp_path: Path) -> None:
    """The pieces are the file, and as many as Python's reader finds; a body line that begins with From is quoted."""
    box = mailbox.mbox(tmp_path / "all.mbox")
    for number in range(5):
        box.add(message(number, "one\n\nFrom here on\n"))
    box.flush()
    data = (tmp_path / "all.mbox").read_bytes()

    pieces = cut(data)

    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == data
    found = [parse_mail(piece) for piece in pieces if isinstance(piece, bytes)]
    assert [one.doc_id for one in found] == [f"m{number}@x" for number in range(5)]


def test_a_long_message_is_one_reject_and_the_next_is_read() -> None:
    """A message longer than `input.max_record` is not held in memory as a whole."""
    long, short = b"From a\nSubject: a\n\n" + b"x\n" * (3 << 20) + b"\n", b"From b\nSubject: b\n\nshort\n"

    first, *rest = cut(long + short, most=1 << 20)

    assert isinstance(first, Reject)
    assert (first.reason, first.detail.partition(" ")[0]) == ("too large", f"{len(long):,}")
    assert rest == [short]


@given(st.lists(st.sampled_from([b"From a\n", b"\n", b"\r\n", b"Subject: a", b"x", b" "]), max_size=12))
def test_the_pieces_are_the_file(parts: list[bytes]) -> None:
    """Whatever the bytes, nothing is lost or added, and reading never raises."""
    data = b"".join(parts)
    pieces = cut(data)

    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == data
    assert all(isinstance(parse_mail(piece), Record | Reject) for piece in pieces if isinstance(piece, bytes))


@pytest.mark.parametrize(("name", "head"), [("a.eml", b"\x89PNG\r\n\x1a\n\0"), ("a.txt", b"Subject: a\n\nb")])
def test_other_files_are_no_mail(name: str, head: bytes) -> None:
    """A name alone makes no mail, nor does a beginning alone."""
    try:
        found = container_head(head, name, None, {})
    except ValueError:
        return
    assert found is None or found.format.name != "mail"
