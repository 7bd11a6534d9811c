"""Archives of the web for tests: records of WARC and ARC files, and a crawl with revisits."""

import gzip
from base64 import b32encode
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple


class Made(NamedTuple):
    """A record of an archive: its id, address, text, date and the rest."""

    name: str
    uri: str
    text: str
    date: str
    status: int = 200
    kind: str = "response"
    media: str = "text/html; charset=utf-8"
    more: str = ""

    @property
    def page(self) -> bytes:
        """The payload."""
        return f"<html><body>{self.text}</body></html>".encode()

    @property
    def digest(self) -> str:
        """Its digest."""
        return "sha1:" + b32encode(sha1(self.page).digest()).decode()  # noqa: S324 - as archives write it

    def warc(self) -> bytes:
        """Return the record in a WARC file."""
        head = f"HTTP/1.1 {self.status} So\r\nContent-Type: {self.media}\r\nX-Rank: {len(self.name)}\r\n\r\n"
        block = head.encode() + (b"" if self.kind == "revisit" else self.page)
        fields = (
            f"WARC/1.1\r\nWARC-Type: {self.kind}\r\nWARC-Record-ID: <urn:x:{self.name}>\r\nWARC-Date: {self.date}\r\n"
            f"WARC-Target-URI: {self.uri}\r\nWARC-Payload-Digest: {self.digest}\r\n{self.more}"
            f"Content-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        return fields.encode() + block + b"\r\n\r\n"

    def arc(self) -> bytes:
        """Return the record in an ARC file."""
        block = f"HTTP/1.1 {self.status} So\r\nContent-Type: {self.media}\r\n\r\n".encode() + self.page
        date = "".join(sign for sign in self.date if sign.isdigit())
        return f"{self.uri} 10.0.0.1 {date} {self.media.partition(';')[0]} {len(block)}\n".encode() + block + b"\n"


def words(family: int, *, length: int = 60) -> str:
    """Return the text of a family of pages."""
    return " ".join(f"word{family}of{place}" for place in range(length))


REFERS_TO_ADDRESS = "WARC-Refers-To-Target-URI: http://b.example/\r\nWARC-Refers-To-Date: 2021-06-01T00:00:00Z\r\n"
CRAWL = [
    Made("z", "http://a.example/", words(1), "2020-01-01T00:00:00Z"),
    Made("a", "http://a.example/", words(1), "2023-01-01T00:00:00.5Z"),
    Made("b", "http://a.example/", words(1), "2024-01-01T00:00:00Z", kind="revisit"),
    Made("c", "http://b.example/", words(2), "2021-06-01T00:00:00Z"),
    Made("d", "http://b.example/", "nothing", "2024-02-01T00:00:00Z", 304, "revisit", more=REFERS_TO_ADDRESS),
    Made(
        "e", "http://c.example/", "gone", "2024-02-02T00:00:00Z", kind="revisit", more="WARC-Refers-To: <urn:x:c>\r\n"
    ),
    Made("lost", "http://d.example/", words(9), "2024-02-02T00:00:00Z", kind="revisit"),
    Made("moved", "http://e.example/", words(5), "2022-01-01T00:00:00Z", 301),
    Made("style", "http://e.example/s", words(6), "2022-01-01T00:00:00Z", media="text/css"),
]
"""Two families, each of one text, with revisits by digest, by address and date, and by id; one of what is not there."""


def write_crawl(folder: Path, made: list[Made] = CRAWL) -> Path:
    """Write a crawl in which each record is a gzip member, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "crawl.warc.gz"
    path.write_bytes(b"".join(gzip.compress(one.warc()) for one in made))
    return path
