"""What a record of a collection file looks like: declarations of formats, without code.

    Format      where in a record the id, the URL and the content stand; a declaration without code
    FORMATS     the declared ones by name: a format that is another set of paths is one more entry here
    FileHead    a format with what the head of one file tells: how to cut it and parse its records

The language of paths. Names are local: a prefix may be written and is ignored (`dc:title` is `title`).

    a/b                    children, by name; `*` is any child
    @Id    link/@href      an attribute; the last step
    .                      the record itself
    field[@name=id]        those whose attribute has this value; a missing attribute is empty: `link[@rel=]`
    title[1] a[last()]/b   of the children of one parent the first, or the last
    encoded|description    the first of these that is present and not empty
    html(encoded|summary)  what it holds: `html(…)`; `text(…)`, no markup; `base64(…)`; `typed(…)`, as its
                           attribute `type` says (Atom). Else: base64 if its attribute `encoding` says so, and
                           markup as the format says

In JSON a path is a key or dotted keys (`meta.url`); in `trec` the name of an element at any depth, whatever its
case, or an attribute of the record. Alternatives and `html(…)` mean the same everywhere.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, cast

Kind = Literal["xml", "sgml", "jsonl", "warc", "csv", "parquet", "html"]
FieldKind = Literal["auto", "html", "text", "base64", "typed"]


class FormatError(ValueError):
    """It cannot be told how to read this file; the message says what to set."""


class NoRecordsError(FormatError):
    """The head holds no start of a record; a longer head may."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: children by local name, or an attribute.

    `where` asks for an attribute's value; `position` takes the first (0) or the last (-1) of one parent's.
    """

    name: str
    is_attribute: bool = False
    where: tuple[str, str] | None = None
    position: int | None = None


Path = tuple[Step, ...]
_NAME = r"[^\s:@/\[\]|()*]+"
_STEP = re.compile(
    rf"(@?)(?:{_NAME}:)?(\*|{_NAME})(?:\[(?:(1)|(last\(\))|@([^\s=\]]+)=[\"']?([^\"'\]]*)[\"']?)\])?",
)
_FIELD = re.compile(r"\s*(html|text|base64|typed)\(([^()]*(?:\(\)[^()]*)*)\)\s*")


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """Read one path of XML, without alternatives; `.` (the record) is the empty path.

    Raises:
        FormatError: if a step cannot be read, or an attribute is not the last step.

    Example:
        >>> [step.name for step in parse_path("metadata/oai_dc:dc/title[1]")]
        ['metadata', 'dc', 'title']
    """
    steps: list[Step] = []
    for part in _split_outside_brackets(text.strip(), "/"):
        if part == ".":
            continue
        found = _STEP.fullmatch(part)
        if found is None or (steps and steps[-1].is_attribute):
            raise FormatError(f"expected a path like a/b, @Id, a[@name=id], a|b or html(a), got {text!r}")
        sign, name, first, last, key, value = found.groups()
        where = (key.rpartition(":")[2], value) if key else None
        steps.append(Step(name, bool(sign), where, 0 if first else -1 if last else None))
    return tuple(steps)


@lru_cache(maxsize=1024)
def split_field(text: str) -> tuple[FieldKind, tuple[str, ...]]:
    """What a field holds, and its alternative paths, unread.

    Example:
        >>> split_field("html(encoded|description)"), split_field("@Id")
        (('html', ('encoded', 'description')), ('auto', ('@Id',)))
    """
    found = _FIELD.fullmatch(text)
    kind, paths = (cast(FieldKind, found[1]), found[2]) if found else ("auto", text)
    return kind, tuple(path.strip() for path in _split_outside_brackets(paths, "|"))


def _split_outside_brackets(text: str, mark: str) -> list[str]:
    """The parts of a text between marks; one is inside brackets where the next bracket after it is a closing one."""
    parts, end, is_inside = [], len(text), False
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "[]":
            is_inside = text[at] == "]"
        elif text[at] == mark and not is_inside:
            parts.append(text[at + 1 : end])
            end = at
    return [text[:end], *reversed(parts)]


@dataclass(frozen=True, slots=True)
class Format:
    """Where things stand in a record.

    `title` fields come before the content when present, but do not make a document alone: a record in which
    no `content` path matches is rejected, and so is one in which `deleted` matches. `may_encode_url` also
    tries base64 on the URL, which has no attribute that says so. `is_markup`: True for HTML, False for plain
    text, None where each document must be looked at. `roots` are the names of root elements by which a file
    is known to be of this format, if it has such records.
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
    has_own_charset: bool = False  # the content's charset is not the file's
    deleted: str | None = None
    roots: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """All its paths."""
        single = (path for path in (self.id, self.url, self.deleted) if path)
        return (*single, *self.title, *self.content)


_DECLARED = (
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
    Format(  # TREC web and newswire, CLEF, Reuters-21578: see `sgml_records`
        name="trec",
        kind="sgml",
        id="DOCNO|@NEWID",
        title=("HEADLINE|TITLE|HEAD|HL|TI|TTL",),
        content=("LEADPARA|LEAD|LD", "BODY|TEXT|TX"),
        is_markup=True,
        has_own_charset=True,
    ),
    Format(  # the id of the page, not of its revision; of a full history the newest revision, which is the last
        name="mediawiki",
        record="page",
        id="id",
        url="title",
        content=("revision[last()]/text",),
        is_markup=False,
        roots=("mediawiki",),
    ),
    Format(
        name="stackexchange",
        record="row",
        id="@Id",
        title=("text(@Title)",),
        content=("html(@Body)", "text(@Text)"),
        roots=("posts", "comments"),
    ),
    Format(  # RSS 2.0, and 1.0 in RDF. The first of a name: feeds have media:title, WordPress excerpt:encoded
        name="rss",
        record="item",
        id="guid|@about|link",
        url="link",
        title=("title[1]",),
        content=("html(encoded[1]|description[1])",),
        roots=("rss", "RDF"),
    ),
    Format(
        name="atom",
        record="entry",
        id="id",
        url="link[@rel=alternate]/@href|link[@rel=]/@href|link/@href",
        title=("typed(title[1])",),
        content=("typed(content[1]|summary[1])",),
        roots=("feed",),
    ),
    Format(
        name="oai",
        record="record",
        id="header/identifier",
        url="metadata/*/identifier",
        title=("metadata/*/title",),
        content=("metadata/*/description|metadata/*/abstract|metadata",),
        is_markup=False,
        deleted="header[@status=deleted]",
        roots=("OAI-PMH",),
    ),
    Format(
        name="solr",
        record="doc",
        id="field[@name=id]",
        url="field[@name=url]",
        title=("field[@name=title]",),
        content=("field[@name=text]|field[@name=content]|field[@name=body]|field[@name=description]",),
        roots=("add",),
    ),
    Format(
        name="sphinx",
        record="document",
        id="@id",
        title=("title|subject",),
        content=("content|text|body",),
        roots=("docset",),
    ),
    Format(name="xml"),
    Format(name="jsonl", kind="jsonl"),
    Format(name="warc", kind="warc"),
    Format(name="csv", kind="csv"),
    Format(name="parquet", kind="parquet"),
    Format(name="html", kind="html", is_markup=True),
)
FORMATS: dict[str, Format] = {declared.name: declared for declared in _DECLARED}


@dataclass(frozen=True, slots=True)
class FileHead:
    """All that the records of a file need; equal for files of equal shape, so that these are read as one.

    `separator` is what the file is cut at, in its own encoding: the record's end tag as spelled, or a newline
    (`is_by_line`: JSON lines, or self-closing rows `<row .../>`). `namespaces` are the declarations in force
    around a record, (prefix, URI) sorted, "" the default one. `why` says, for a person, how the format was
    chosen; it is no part of equality.
    """

    format: Format
    encoding: str
    separator: bytes
    tag: str = ""
    namespaces: tuple[tuple[str, str], ...] = ()
    is_root_record: bool = False
    is_by_line: bool = False
    why: str = field(default="", compare=False)

    @property
    def separator_text(self) -> str:
        """The separator as text, for readers that take text and an encoding."""
        return self.separator.decode(self.encoding)
