"""What a record of a collection file looks like: declarations of formats, without code.

    Format      where in a record the id, the URL and the content stand; a declaration without code
    FORMATS     the declared ones by name: a format that is another set of paths is one more line here
    FileHead    a format with what the head of one file tells: how to cut it and parse its records

A path names children by local name (`header/identifier`), attributes (`@Id`, `link/@href`), children with a
given attribute (`field[@name=id]`), or the record itself (`.`); in JSON, keys (`meta.url`). Prefixes are
ignored.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["xml", "jsonl", "warc", "csv", "parquet", "html"]


class FormatError(ValueError):
    """It cannot be told how to read this file; the message says what to set."""


class NoRecordsError(FormatError):
    """The head holds no start of a record; a longer head may."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: children by local name (optionally with an attribute's value), or an attribute."""

    name: str
    is_attribute: bool = False
    where: tuple[str, str] | None = None


Path = tuple[Step, ...]
_STEP = re.compile(r"(@?)(?:[^\s:@/\[\]]+:)?([^\s:@/\[\]]+)(?:\[@([^\s=\]]+)=[\"']?([^\"'\]]*)[\"']?\])?")


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """Read a path such as `a/b`, `@Id`, `link/@href`, `field[@name=id]`; `.` (the record) is the empty path.

    Raises:
        FormatError: if a step cannot be read, or an attribute is not the last step.
    """
    steps: list[Step] = []
    for part in text.strip().split("/"):
        if part == ".":
            continue
        found = _STEP.fullmatch(part)
        if found is None or (steps and steps[-1].is_attribute):
            raise FormatError(f"expected a path like a/b, @Id or field[@name=id], got {text!r}")
        sign, name, key, value = found.groups()
        steps.append(Step(name, bool(sign), (key.rpartition(":")[2], value) if key else None))
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Format:
    """Where things stand in a record.

    `title` fields come before the content when present, but do not make a document alone: a record in which
    no `content` path matches is rejected. An element with encoding="base64" is decoded in every format;
    `may_encode_url` also tries it on the URL, which has no such attribute. `is_markup`: True for HTML, False
    for plain text, None where each document must be looked at.
    """

    name: str
    kind: Kind = "xml"
    record: str = ""
    id: str | None = None
    url: str | None = None
    title: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    is_markup: bool | None = None
    may_encode_url: bool = False
    has_own_charset: bool = False  # content is base64: its charset is not the file's


FORMATS: dict[str, Format] = {
    declared.name: declared
    for declared in (
        Format(
            name="romip",
            record="document",
            id="docID",
            url="docURL",
            title=("subject",),
            content=("content",),
            is_markup=True,
            may_encode_url=True,
            has_own_charset=True,
        ),
        Format(name="xml"),
        Format(name="jsonl", kind="jsonl"),
        Format(name="warc", kind="warc"),
        Format(name="csv", kind="csv"),
        Format(name="parquet", kind="parquet"),
        Format(name="html", kind="html", is_markup=True),
    )
}


@dataclass(frozen=True, slots=True)
class FileHead:
    """All that the records of a file need; equal for files of equal shape, so that these are read as one.

    `separator` is what the file is cut at, in its own encoding: the record's end tag as spelled, or a newline
    (`is_by_line`: JSON lines, or self-closing rows `<row .../>`). `namespaces` are the declarations in force
    around a record, (prefix, URI) sorted, "" the default one.
    """

    format: Format
    encoding: str
    separator: bytes
    tag: str = ""
    namespaces: tuple[tuple[str, str], ...] = ()
    is_root_record: bool = False
    is_by_line: bool = False

    @property
    def separator_text(self) -> str:
        """The separator as text, for readers that take text and an encoding."""
        return self.separator.decode(self.encoding)
