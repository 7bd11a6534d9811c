"""Declarations of the formats of collection files: where the id, the URL and the content are in a record.

    FILE_KINDS    how the files of each kind are read and written again: read by all who cut, copy, tag or rewrite them
    Format        the declaration of one format, without code
    FORMATS       all formats by name. A new format that differs only in its paths is one more entry here
    FileHead      a format, and what is found in the head of one file: how to cut the file and parse its records
    parse_path, split_field   the path language: text -> Steps, or the kind of a field and its alternatives

The path language is described at `Format`.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, cast

Kind = Literal["xml", "sgml", "jsonl", "warc", "csv", "parquet", "html", "mail", "text"]
FieldKind = Literal["auto", "html", "text", "base64", "typed"]


class FileKind(NamedTuple):
    """How the files of a kind are read, and written again.

    Attributes:
        is_cut: whether they are cut at a separator between records; else `containers` reads them from their start.
        is_copied: whether a file is one record, named by its path, and is copied as it is or not written at all.
        is_columnar: whether its rows lie in columns, which a schema at its end names: it must be seekable.
        is_packed: whether it holds compressed parts, which expand by themselves.
        has_columns: whether its records have values of their own by which the keep policy may order.
        starts: the first bytes by which such a file is recognised, whatever its name.
        holds: what is read of it, where no path says where the id and the text are; empty where paths do.
        uncut: what to call files of whose records nothing can be cut in place; empty where it can.
        untagged: what to call a file that has no place for tags; empty where it has.
    """

    is_cut: bool = False
    is_copied: bool = False
    is_columnar: bool = False
    is_packed: bool = False
    has_columns: bool = True
    starts: tuple[bytes, ...] = ()
    holds: str = ""
    uncut: str = ""
    untagged: str = ""


FILE_KINDS: dict[Kind, FileKind] = {
    "xml": FileKind(is_cut=True),
    "sgml": FileKind(is_cut=True, uncut="TREC"),
    "jsonl": FileKind(is_cut=True),
    "warc": FileKind(is_packed=True, starts=(b"WARC/", b"filedesc://"), holds="the page of each response",
                     uncut="WARC"),
    "csv": FileKind(),
    "parquet": FileKind(is_columnar=True, is_packed=True, starts=(b"PAR1",)),
    "html": FileKind(is_copied=True, has_columns=False, holds="the whole file", uncut="pages", untagged="a page"),
    "mail": FileKind(holds="subject and body of each message", uncut="e-mail", untagged="e-mail"),
    "text": FileKind(is_copied=True, has_columns=False, holds="the whole file", untagged="a text"),
}  # fmt: skip


class FormatError(ValueError):
    """The format of a file could not be recognised; the message says what to set."""


class BinaryError(FormatError):
    """A file holds no text; the message says what it is."""


class NoRecordsError(FormatError):
    """No record starts in the head of a file; one may start in a longer head."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: children by local name, or an attribute.

    Attributes:
        name: local name, or `*`.
        is_attribute: whether the step is an attribute.
        where: an attribute and its required value; None for no condition.
        position: 0 for the first of these children of one parent, -1 for the last; None for all.
        is_deep: whether elements at any depth are meant, not only children.
        choices: paths of which, for each parent, the first that is not empty is taken; `name` is empty then.
    """

    name: str
    is_attribute: bool = False
    where: tuple[str, str] | None = None
    position: int | None = None
    is_deep: bool = False
    choices: tuple["Path", ...] = ()


Path = tuple[Step, ...]
_NAME = r"[^\s:@/\[\]|()*]+"
_STEP = re.compile(rf"(@?)(?:{_NAME}:)?(\*|{_NAME})(?:\[(?:(1)|(last\(\))|@([^\s=\]]+)=[\"']?([^\"'\]]*)[\"']?)\])?")
_FIELD = re.compile(r"\s*(html|text|base64|typed)\(([^()]*(?:\(\)[^()]*)*)\)\s*")


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """Parse one XML path without alternatives; `.` (the record) is the empty path.

    Raises:
        FormatError: if a step cannot be read, or an attribute is not the last step.

    Example:
        >>> [step.name for step in parse_path("metadata/oai_dc:dc/title[1]")]
        ['metadata', 'dc', 'title']
    """
    steps: list[Step] = []
    parts = _split_outside_brackets(text.strip(), "/")
    deep = parts.index("**") + 1 if "**" in parts[:-1] else 0  # once only: elements below others would be met again
    for at, part in enumerate(parts):
        if part == "." or (deep and at == deep - 1):
            continue
        if part.startswith("(") and part.endswith(")"):
            steps.append(Step("", choices=tuple(map(parse_path, _split_outside_brackets(part[1:-1], "|")))))
            continue
        match = _STEP.fullmatch(part)
        if match is None or (steps and steps[-1].is_attribute):
            raise FormatError(f"expected a path like a/b, @Id, a[@name=id], a|b or html(a), got {text!r}")
        sign, name, first, last, key, value = match.groups()
        where = (key.rpartition(":")[2], value) if key else None
        steps.append(Step(name, bool(sign), where, 0 if first else -1 if last else None, is_deep=0 < deep == at))
    return tuple(steps)


@lru_cache(maxsize=1024)
def split_field(text: str) -> tuple[FieldKind, tuple[str, ...]]:
    """Return the kind of a field, and its alternative paths as text.

    Example:
        >>> split_field("html(encoded|description)"), split_field("@Id")
        (('html', ('encoded', 'description')), ('auto', ('@Id',)))
    """
    match = _FIELD.fullmatch(text)
    kind, paths = (cast(FieldKind, match[1]), match[2]) if match else ("auto", text)
    return kind, tuple(path.strip() for path in _split_outside_brackets(paths, "|"))


def _split_outside_brackets(text: str, mark: str) -> list[str]:
    """Split a text at marks outside brackets. A mark is inside if the next bracket after it is a closing one.

    So it is in round brackets of a path, `a/(b|c)`, which may stand in one another.
    """
    parts, end, is_inside = [], len(text), False
    depth, has_choices = 0, "/(" in text
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "[]":
            is_inside = text[at] == "]"
        elif has_choices and not is_inside and text[at] in "()":
            depth += 1 if text[at] == ")" else -1
        elif text[at] == mark and not is_inside and depth == 0:
            parts.append(text[at + 1 : end])
            end = at
    return [text[:end], *reversed(parts)]


@dataclass(frozen=True, slots=True)
class Format:
    """The declaration of a format: the paths of a record's parts, and how they are read.

    Paths are written in a small language. Names are local: a prefix is allowed, and ignored (`dc:title` is `title`).

        a/b                    children, by name; `*` is any child
        @Id    link/@href      an attribute; only as the last step
        .                      the record itself
        field[@name=id]        children whose attribute has this value; a missing attribute is empty: `link[@rel=]`
        title[1] a[last()]/b   the first, or the last, of these children of one parent; those of its namespace go first,
                               and the last is that of the latest `timestamp`, if all have one
        a/**/b                 elements at any depth
        encoded|description    the first of these that is present and not empty
        a/(b|c/d)              of each a the first of these that is not empty
        html(encoded|summary)  the kind of the field: `html(…)`; `text(…)`, no markup; `base64(…)`; `typed(…)`, given
                               by its attribute `type` (Atom). Without a kind, the field is base64 if its attribute
                               `encoding` says so, and markup if the format says so

    In JSON, a path is a key or dotted keys (`meta.url`). In `trec`, it is the name of an element at any depth, in any
    case, or an attribute of the record. Alternatives and `html(…)` mean the same everywhere.

    Attributes:
        name: as in `input.format`.
        kind: how files are cut and records parsed.
        record: local name of the record element.
        title: paths of titles, which come before the content; a record with titles only is rejected.
        content: paths of the content; a record in which none matches is rejected.
        is_markup: True for HTML, False for plain text, None to test each document.
        may_encode_url: whether the URL may be base64 without an attribute that says so.
        has_own_charset: whether the content may have a different encoding from the file.
        policy: paths of the values by which the keep policy orders documents.
        prefixes_ids: whether the name of its file comes before the id of each record.
        statuses: HTTP statuses of the captures of an archive that are read; None for all.
        deleted: path that marks a deleted record: a record in which it matches is rejected.
        roots: names of root elements by which a file of such records is recognised, or paths of elements from there.
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
    has_own_charset: bool = False
    policy: tuple[str, ...] = ()
    prefixes_ids: bool = False
    statuses: tuple[int, ...] | None = None
    deleted: str | None = None
    roots: tuple[str, ...] = ()

    @property
    def files(self) -> FileKind:
        """How its files are read, and written again."""
        return FILE_KINDS[self.kind]

    @property
    def fields(self) -> tuple[str, ...]:
        """All paths of the format."""
        single = (path for path in (self.id, self.url, self.deleted) if path)
        return (*single, *self.title, *self.content, *self.policy)


_DECLARED = (
    Format(name="romip", record="document", id="docID", url="docURL", title=("subject",), content=("content",),
           is_markup=True, may_encode_url=True, has_own_charset=True),
    # TREC web and newswire, CLEF, Reuters-21578: see `sgml_records`
    Format(name="trec", kind="sgml", id="DOCNO|@NEWID|@id", title=("HEADLINE|TITLE|HEAD|HL|TI|TTL",),
           content=("LEADPARA|LEAD|LD|LP", "BODY|TEXT|TX|ABSTRACT|SUMMARY"), is_markup=True, has_own_charset=True),
    # the id is the page's, not the revision's; of a full history the newest revision is read
    Format(name="mediawiki", record="page", id="id", url="title", content=("revision[last()]/text",), is_markup=False,
           deleted="revision[last()]/text[@deleted=deleted]", roots=("mediawiki",)),
    Format(name="stackexchange", record="row", id="@Id", title=("text(@Title)",),
           content=("html(@Body)", "text(@Text)"), roots=("posts", "comments")),
    # RSS 2.0, and 1.0 in RDF. `[1]`: feeds also have media:title, WordPress also excerpt:encoded,
    # podcasts itunes:summary
    Format(name="rss", record="item", id="guid|@about|link", url="link", title=("title[1]",),
           content=("html(encoded[1]|description[1]|summary[1]|group/description)",), roots=("rss", "RDF")),
    # videos have their description in a group of Media RSS
    Format(name="atom", record="entry", id="id", url="link[@rel=alternate]/@href|link[@rel=]/@href|link/@href",
           title=("typed(title[1])",), content=("typed(content[1]|summary[1]|group/description|description)",),
           roots=("feed",)),
    Format(name="oai", record="record", id="header/identifier", url="metadata/*/identifier",
           title=("metadata/*/title|metadata/*/titleInfo/title",),
           content=("metadata/*/description|metadata/*/abstract|metadata",),
           is_markup=False, deleted="header[@status=deleted]", roots=("OAI-PMH",)),
    # journal articles; one a file, or several
    Format(name="jats", record="article",
           id="|".join(f"front/article-meta/article-id[@pub-id-type={kind}]"
                       for kind in ("pmc", "pmcid", "pmid", "doi")),
           url="front/article-meta/self-uri/@href", title=("front/article-meta/title-group/article-title",),
           content=("front/article-meta/abstract", "body", "floats-group", "back/app-group|back/app",
                    "sub-article/(front-stub|front)/**/article-title", "sub-article/body", "response/body"),
           is_markup=False,
           roots=("article/front/article-meta", "pmc-articleset")),
    # many records have a title and no abstract: each is a text
    Format(name="pubmed", record="PubmedArticle", id="MedlineCitation/PMID",
           content=("MedlineCitation/Article/ArticleTitle",
                    "MedlineCitation/Article/Abstract|MedlineCitation/OtherAbstract"), is_markup=False,
           roots=("PubmedArticleSet",)),
    # what PubMed has of books: chapters, or a whole one
    Format(name="pubmedbooks", record="PubmedBookArticle", id="BookDocument/PMID",
           content=("BookDocument/ArticleTitle|BookDocument/Book/BookTitle", "BookDocument/Abstract"), is_markup=False,
           roots=("PubmedArticleSet",)),
    # editions and corpora; of papers, also those of which GROBID read the header alone
    Format(name="tei", record="TEI",
           id="@id|teiHeader/fileDesc/publicationStmt/idno[1]|teiHeader/fileDesc/sourceDesc/biblStruct/idno[1]",
           title=("teiHeader/fileDesc/titleStmt/title[1]",), content=("teiHeader/profileDesc/abstract", "text"),
           is_markup=False, roots=("TEI", "teiCorpus")),
    # articles of newspapers; the full text repeats the lead
    Format(name="nitf", record="nitf", id="head/docdata/doc-id/@id-string", url="head/pubdata/@ex-ref",
           title=("head/title|body/body.head/hedline/hl1",),
           content=("body/body.content/block[@class=full_text]|body/body.content|body/body.head/abstract",),
           is_markup=False, roots=("nitf",)),
    # catalogues of libraries: all that a record says
    Format(name="marcxml", record="record", id="controlfield[@tag=001]", content=("datafield",), is_markup=False,
           roots=("collection/record/leader", "record/leader")),
    # memories of translators: a text and its translations are one record
    Format(name="tmx", record="tu", id="@tuid", content=("tuv/seg",), is_markup=False, roots=("tmx",)),
    # laws, bills, judgments and debates: all but what describes the file
    Format(name="akn", record="akomaNtoso",
           id="*/meta/identification/(FRBRExpression|FRBRWork)/FRBRthis/@value",
           content=tuple(f"*/{part}" for part in (
               "coverPage", "longTitle", "preface", "preamble", "header",
               "(body|mainBody|judgmentBody|debateBody|amendmentBody|fragmentBody|collectionBody)",
               "conclusions", "attachments", "components")),
           is_markup=False, roots=("akomaNtoso",)),
    # a page that OCR has read: its words are attributes
    Format(name="alto", record="alto",
           content=("Layout/**/String/@CONTENT",), is_markup=False, roots=("alto",)),
    # likewise; a region may say again what its lines say, and a line what its words say; the first of several readings
    # is the surest; cells of tables come last
    Format(name="pagexml", record="PcGts",
           content=tuple(f"Page/**/{part}/(TextEquiv[1]/Unicode|TextLine/(TextEquiv[1]/Unicode|Word/TextEquiv[1]/Unicode))"
                         for part in ("TextRegion", "TableCell")),
           is_markup=False, roots=("PcGts",)),
    # notes of Evernote, each with a whole document of XHTML as its text
    Format(name="enex", record="note", url="note-attributes/source-url", title=("title",), content=("html(content)",),
           roots=("en-export",)),
    # places on a map; many have a name alone: each is a text
    Format(name="kml", record="Placemark", id="@id", content=("text(name)", "html(description)"), roots=("kml",)),
    Format(name="solr", record="doc", id="field[@name=id]", url="field[@name=url]", title=("field[@name=title]",),
           content=("field[@name=text]|field[@name=content]|field[@name=body]|field[@name=description]",),
           roots=("add",)),
    Format(name="sphinx", record="document", id="@id", title=("title|subject",), content=("content|text|body",),
           roots=("docset",)),
    Format(name="xml"),
    Format(name="jsonl", kind="jsonl"),
    Format(name="warc", kind="warc"),
    Format(name="csv", kind="csv"),
    Format(name="parquet", kind="parquet"),
    Format(name="html", kind="html", is_markup=True),
    Format(name="mail", kind="mail"),
    Format(name="text", kind="text", is_markup=False),
)  # fmt: skip
FORMATS: dict[str, Format] = {declared.name: declared for declared in _DECLARED}


@dataclass(frozen=True, slots=True)
class FileHead:
    """All that is needed to read the records of a file. Files with equal heads are read together.

    Attributes:
        format: the format, with its paths complete.
        separator: the bytes at which the file is cut: the end tag of a record as most records spell it, `/>` if all are
            empty elements, or a newline. For a table, the bytes between its fields.
        tag: the name in the start tag of a record, as spelled in the file.
        namespaces: the declarations in force around a record, (prefix, URI) sorted; the prefix "" is the default.
        is_root_record: whether the record is the root element.
        is_indivisible: whether records hold the separator, so that a file must be read from its start by one task.
        is_by_line: whether each record is a line, as in JSON lines.
        is_spread: whether they are lines only as a `LinedStream`: JSON in an array, over several lines, or many a line.
        is_paired: whether a line before each says what it is, as in files for Elasticsearch (`json_pairs`).
        list_keys: the keys that lead to that array, where it stands in an object.
        quote: the character around the values of a table; empty if none is quoted.
        escape: the character before a quote inside such a value; empty if it is doubled.
        why: why the format was chosen, as a message; heads that differ only here are equal.
    """

    format: Format
    encoding: str
    separator: bytes
    tag: str = ""
    namespaces: tuple[tuple[str, str], ...] = ()
    is_root_record: bool = False
    is_indivisible: bool = False
    is_by_line: bool = False
    is_spread: bool = False
    is_paired: bool = False
    list_keys: tuple[str, ...] = ()
    quote: str = '"'
    escape: str = ""
    why: str = field(default="", compare=False)

    @property
    def separator_text(self) -> str:
        """The separator as text, for readers that expect text and an encoding."""
        return self.separator.decode(self.encoding)
