"""The structure of an XML file, from its head: its elements, their spelling, and which of them are records.

    scan          head -> Shape: the start tags outside comments, CDATA, instructions and DOCTYPE
    find_record   the path of the record element in a file of unknown format
    first_of      a field by its usual names
    text_fields   title and body, by the same names
    rivals        the columns of a table of which what they hold decides
    table_format  the columns of a table by their usual names

The numbers of tags, levels and candidates are all limited.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nddup.reading.chats import CHAT_NAMES, texts_of
from nddup.reading.formats import Format, FormatError, split_field
from nddup.reading.markup import INLINE
from nddup.reading.xml_records import ATTRIBUTES, SKIPPED, UNFINISHED

MAX_TOKENS = 200_000
MAX_DEPTH = 64  # levels below which tags are ignored
MAX_CANDIDATES = 50
RECORD_LEVELS = 4

ID_NAMES = (
    "docid", "docno", "doc_id", "id", "@itemid", "@id", "@docid", "@doc_id", "@newid", "guid", "identifier",
    "document_id", "_id", "_id.$oid", "uuid", "@about",  # of BEIR and Elasticsearch; of MongoDB; of RDF
)  # fmt: skip
URL_NAMES = ("docurl", "url", "link", "loc", "uri", "@url", "@href")
TITLE_NAMES = ("title", "titleinfo", "subject", "headline", "@title")  # the second of MODS, whose subjects are topics
BODY_NAMES = (
    "content", "text", "body",
    "contents", "maintext", "full_text", "fulltext", "selftext",  # of Anserini; of news-please; of X; of Reddit
    "articlebody", "article_body", "body_text", "article_text", "page_content",  # of schema.org, in JSON; of LangChain
    "content_text", "content_html",  # of JSON Feed
    "raw_content", "html", "raw_html", "description", "abstract", "@body", "@text", "@content",
)  # fmt: skip
DESCRIPTIONS = ("description", "abstract")
TASK_NAMES = (
    "system_prompt", "instruction", "context", "passage", "prompt", "question", "query", "input",
    "output", "completion", "response", "answer", "chosen", "rejected",
)  # fmt: skip
"""Texts of a task for a model, and of its answers: where at least two are there, and no other text, all are read."""

DESCRIBED = ("article", "transcript")
"""Texts where a description stands beside them; alone, they may be records."""

SOURCE: Final = "_source."
"""What exports of Elasticsearch put before the fields of a document."""

FIRST_ROWS: Final = 100
"""First rows of a table that show which of its columns hold something."""

MARKUP_NAME = re.compile(r"@?(raw_?|page_?|body_?|content_?)?html(_?content|_?body|_?text)?", re.IGNORECASE)
"""Names of fields that hold pages or parts of pages: their scripts and styles are no text."""

PARAGRAPHS = ("p", "para", "s", "head", "title", "headline", "br", "lb")
"""Elements of a text, beside inline ones: a record that has no others is a text itself."""

RECORD_NAMES = ("document", "doc", "record", "item", "entry", "page", "article", "row")
LONGEST_NAME, MOST_NAMES = 40, 30
"""In a message: most characters of a column's name, and most names."""

_NO_TEXT = " \t\r\n\0\ufeff"
"""What may stand between elements of XML, also where files were joined."""

SETTINGS = "set input.record, input.id and input.content (and input.format)"

_TOKEN = re.compile(
    rf"(?P<skipped>{SKIPPED})|(?P<unfinished>{UNFINISHED})"
    rf"|</(?P<end>[^\s<>/]++)\s*+>|<(?P<start>[^\s<>/!?=\"']++)(?P<attributes>{ATTRIBUTES})>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(?<![^\s=\"'/])([^\s=\"'/]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)')")


@dataclass(slots=True)
class Element:
    """One start tag of the head.

    Attributes:
        path: local names from the root to the element.
        tag: the name as spelled in the file.
        namespaces: declarations on the element, by prefix; "" is the default.
        is_empty: whether the tag is self-closing.
        parent: the index of the parent element; -1 for the root.
        end_tag: the end tag as spelled in the file; empty if the head does not contain it.
    """

    path: tuple[str, ...]
    tag: str
    attributes: dict[str, str]
    namespaces: dict[str, str]
    is_empty: bool
    parent: int
    end_tag: str = ""


@dataclass(slots=True)
class Shape:
    """The elements of a head in document order, and the fields seen at each path.

    `with_text`: paths with text; `with_values`: with values of attributes, their own or of elements inside.
    `is_prose`: whether text stands before, between or behind the outermost elements, as nowhere in XML.
    """

    elements: list[Element] = field(default_factory=list)
    seen: dict[tuple[str, ...], dict[str, None]] = field(default_factory=dict)
    with_text: set[tuple[str, ...]] = field(default_factory=set)
    with_values: set[tuple[str, ...]] = field(default_factory=set)
    is_prose: bool = False

    def fields(self, path: tuple[str, ...]) -> list[str]:
        """Return the children (local names) and attributes (`@name`) seen in the elements at `path`."""
        return list(self.seen.get(path, ()))

    def filled(self, path: tuple[str, ...]) -> list[str]:
        """Return those of `fields` that hold some text in one of these elements."""
        return [name for name in self.fields(path) if (*path, name) in self.with_text]

    def maybe_filled(self, path: tuple[str, ...]) -> list[str]:
        """Return those of `fields` with some text, or without a word: `<content src="…"/>` is neither."""
        inner = [(name, (*path, name)) for name in self.fields(path)]
        return [name for name, at in inner if at in self.with_text or at not in self.with_values]

    def records(self, name: str) -> list[Element]:
        """Return all elements with this local name, at any depth."""
        return [element for element in self.elements if element.path[-1] == name]

    def add(self, element: Element) -> None:
        """Add the next start tag."""
        self.elements.append(element)
        fields = self.seen.setdefault(element.path, {})
        fields.update(dict.fromkeys(f"@{name}" for name in element.attributes))
        values = [(*element.path, f"@{name}") for name, value in element.attributes.items() if value.strip()]
        self.with_text.update(values)
        if values:
            _add_with_outer(self.with_values, element.path)
        if len(element.path) > 1:
            self.seen[element.path[:-1]][element.path[-1]] = None

    def add_text(self, path: tuple[str, ...]) -> None:
        """Note that some text stands in an element, and so in those around it."""
        _add_with_outer(self.with_text, path)


def _add_with_outer(paths: set[tuple[str, ...]], path: tuple[str, ...]) -> None:
    while path and path not in paths:
        paths.add(path)
        path = path[:-1]


def scan(text: str) -> Shape:
    """Read the tags of a head, up to a comment, CDATA section, instruction or DOCTYPE that does not end.

    Cost: linear; at most MAX_TOKENS tags are read, and those inside MAX_DEPTH open elements are left out.
    """
    shape = Shape()
    stack: list[int] = []
    deeper = 0  # open elements below MAX_DEPTH
    at = 0
    for count, token in enumerate(_TOKEN.finditer(text)):
        is_section = token[0].startswith("<![CDATA[")
        if is_section or text[at : token.start()].strip(_NO_TEXT):
            shape.is_prose |= not stack
            shape.add_text(shape.elements[stack[-1]].path if stack else ())
        at = token.end()
        if token["unfinished"] or count > MAX_TOKENS:
            break

        if token["end"]:
            local = token["end"].rpartition(":")[2]
            if deeper:
                deeper -= 1
            elif stack and shape.elements[stack[-1]].path[-1] == local:
                shape.elements[stack.pop()].end_tag = token[0]
        elif token["start"]:
            is_empty = token["attributes"].endswith("/")
            if len(stack) == MAX_DEPTH:
                deeper += not is_empty
                continue
            shape.add(_element(token, stack[-1] if stack else -1, shape, is_empty=is_empty))
            if not is_empty:
                stack.append(len(shape.elements) - 1)
    else:
        shape.is_prose |= not stack and text[at:].partition("<")[0].strip(_NO_TEXT) != ""
    return shape


def _element(token: re.Match[str], parent: int, shape: Shape, *, is_empty: bool) -> Element:
    values = {m[1]: m[2] if m[2] is not None else m[3] for m in _ATTRIBUTE.finditer(token["attributes"])}
    declared = {name: value for name, value in values.items() if name == "xmlns" or name.startswith("xmlns:")}
    return Element(
        path=(*(shape.elements[parent].path if parent >= 0 else ()), token["start"].rpartition(":")[2]),
        tag=token["start"],
        attributes={name.rpartition(":")[2]: value for name, value in values.items() if name not in declared},
        namespaces={name.partition(":")[2]: value for name, value in declared.items()},
        is_empty=is_empty,
        parent=parent,
    )


def first_of(names: tuple[str, ...], fields: list[str], filled: Sequence[str] = ()) -> str | None:
    """Return the field whose name comes first in `names`, ignoring case; None if there is none.

    Args:
        filled: the fields that hold something in the first records; they come before all others.

    Example:
        >>> names, fields = ("content", "text"), ["Text", "content"]
        >>> first_of(names, fields), first_of(names, fields, filled=["Text"])
        ('content', 'Text')
    """
    for names_given in (filled, fields):
        spelled = {name.lower(): name for name in reversed(names_given)}
        if first := next((spelled[name] for name in names if name in spelled), None):
            return first
    return None


def find_record(shape: Shape, *, needs_body: bool) -> tuple[str, ...]:
    """Find the path of the record element, by the rule described in `detect`.

    Raises:
        FormatError: if no element looks like a record.
    """
    counts: dict[tuple[str, ...], int] = {}
    for element in shape.elements:
        counts[element.path] = counts.get(element.path, 0) + 1

    root = shape.elements[0].path
    candidates = sorted((path for path in counts if 1 < len(path) <= RECORD_LEVELS), key=len)
    likely = [path for path in candidates if counts[path] > 1 or path[-1].lower() in RECORD_NAMES]
    for fields_of in (shape.filled, shape.maybe_filled):
        for path in (*likely[:MAX_CANDIDATES], root):
            fields = fields_of(path)
            body = first_of(BODY_NAMES, fields)
            if path != root and body and not _may_be_record(path, fields, counts):
                continue
            if body or (not needs_body and first_of(ID_NAMES, fields)):
                return _named_texts(shape, path, body) if body and needs_body else path
    for path in (*likely[:MAX_CANDIDATES], root):
        if needs_body and is_text(shape, path):
            return path
    raise FormatError(f"cannot tell which element is a record under <{root[-1]}>; {SETTINGS}")


def _may_be_record(path: tuple[str, ...], fields: list[str], counts: dict[tuple[str, ...], int]) -> bool:
    """Return whether elements that are no more than repeated may be records: they hold half of all elements.

    Not so `<meta name="…" content="…"/>` in an article, or the arms of a study, each with a description.
    """
    if path[-1].lower() in RECORD_NAMES or first_of(ID_NAMES, fields):
        return True
    return 2 * sum(counts[inner] for inner in counts if inner[: len(path)] == path) >= sum(counts.values())


def is_text(shape: Shape, path: tuple[str, ...]) -> bool:
    """Return whether the elements at a path are texts with ids, as `<doc id="1">…</doc>`."""
    names = {name.lower() for name in shape.fields(path) if not name.startswith("@")}
    doc_id = first_of(ID_NAMES, shape.fields(path)) or ""
    is_named = path[-1].lower() in RECORD_NAMES and doc_id.startswith("@")
    return is_named and path in shape.with_text and names <= {*PARAGRAPHS, *INLINE}


def _named_texts(shape: Shape, path: tuple[str, ...], body: str) -> tuple[str, ...]:
    """Return the path of the texts of a record if they are records, as in `<corpus><text id="1">`; else its own."""
    inner = [element.attributes for element in shape.elements if element.path == (*path, body)]
    ids = [
        values[name[1:]] for values in inner if (name := first_of(ID_NAMES, [f"@{attribute}" for attribute in values]))
    ]
    is_named = path[-1].lower() in RECORD_NAMES or first_of(ID_NAMES, shape.fields(path)) is not None
    return path if is_named or not 1 < len(inner) == len(set(ids)) else (*path, body)


def part_of_record(shape: Shape, path: tuple[str, ...]) -> str:
    """Return the name of the element at a path if it is a part of a record, as in `<document><id/><passage><text>`.

    So it is if it has no id, and the element around it has one, and a usual name, which it lacks itself; else the
    result is empty.
    """
    around = path[:-1]
    is_named = bool(around) and around[-1].lower() in RECORD_NAMES and path[-1].lower() not in RECORD_NAMES
    has_ids = first_of(ID_NAMES, shape.fields(path)) is None and first_of(ID_NAMES, shape.filled(around)) is not None
    return path[-1] if is_named and has_ids else ""


def text_fields(fields: list[str], chats: Sequence[str] = (), filled: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the fields that make a record's text, in JSON lines, XML and tables: its title, if any, and its body.

    Args:
        fields: the names of all fields.
        chats: of those that hold a chat, which comes before a description of it.
        filled: as of `first_of`.

    Example:
        >>> text_fields(["id", "text", "title"]), text_fields(["id", "title"]), text_fields(["messages"], ["messages"])
        (('title', 'text'), (), ('messages',))
        >>> text_fields(["_id", "_source.user", "_source.body"]), text_fields(["output", "instruction"])
        (('_source.body',), ('instruction', 'output'))
    """
    title, body = first_of(TITLE_NAMES, fields, filled), first_of(BODY_NAMES, fields, filled)
    inner, inner_filled = (
        [name.removeprefix(SOURCE) for name in names if name.startswith(SOURCE)] for names in (fields, filled)
    )
    if body is None and not chats and inner:
        return tuple(SOURCE + name for name in text_fields(inner, (), inner_filled))
    chat = first_of(CHAT_NAMES, list(chats), [name for name in chats if name in filled])
    if body and body.lower() in DESCRIPTIONS:
        body = first_of(DESCRIBED, list(filled) or fields) or body
    if body is None and not chat:
        tasks = {name.lower(): name for name in reversed(fields)}
        given = [tasks[name] for name in TASK_NAMES if name in tasks]
        is_task = len([name for name in given if name in filled or not filled]) > 1
        return (*([title] if title else []), *given) if is_task else ()
    if chat and (body is None or body.lower() in DESCRIPTIONS or (chat in filled and body not in filled)):
        body = chat
    return tuple(name for name in (title, body) if name) if body else ()


def is_filled(value: object) -> bool:
    """Return whether a value holds a text, or is a number or the like."""
    texts = texts_of(value) if isinstance(value, list | dict) else [value]
    return any(text.strip() if isinstance(text, str | bytes | bytearray) else text is not None for text in texts)


def rivals(columns: list[str], declared: Format, chats: Sequence[str] = ()) -> list[str]:
    """Return the columns of which several may be the id, the URL, the title or the text: what they hold decides.

    One that is named twice is refused where it is read.

    Example:
        >>> rivals(["id", "content", "text", "url"], Format("parquet"))
        ['content', 'text']
    """
    bodies = (*BODY_NAMES, *DESCRIBED, *(name.lower() for name in chats if name.lower() in CHAT_NAMES))
    given = declared.id, declared.url, declared.content, declared.content
    groups = [
        [name for name in columns if name.lower() in names and columns.count(name) == 1]
        for names, path in zip((ID_NAMES, URL_NAMES, TITLE_NAMES, bodies), given, strict=True)
        if not path
    ]
    return list(dict.fromkeys(name for group in groups if len(group) > 1 for name in group))


def with_markup(declared: Format) -> Format:
    """Return a format whose texts are markup if the name of its body says so and nothing else is known."""
    body = split_field(declared.content[-1])[1][-1] if declared.content else ""
    name = re.split(r"[./]", body)[-1]
    is_named = declared.is_markup is None and MARKUP_NAME.fullmatch(name)
    return replace(declared, is_markup=True) if is_named else declared


def table_format(declared: Format, columns: list[str], chats: Sequence[str] = (), filled: Sequence[str] = ()) -> Format:
    """Return the format with its columns: those that the user set, or else those with usual names; as `text_fields`.

    Raises:
        FormatError: if a column that was set does not exist, no column looks like the text, or several have the name of
            one that is read.
    """
    content = declared.content or text_fields(columns, chats, filled)
    missing = [name for name in (declared.id, declared.url, *content) if name and name not in columns]
    if missing:
        joined = "; several are joined by +, as title+body" if any("," in name for name in missing) else ""
        raise FormatError(f"no column {', '.join(missing)}; there are {shown_names(columns)}{joined}")
    if not content:
        raise FormatError(f"cannot tell which column is the text; there are {shown_names(columns)}; set input.content")

    doc_id = declared.id or first_of(ID_NAMES, columns, filled)
    url = declared.url or first_of(URL_NAMES, columns, filled)
    for name in filter(None, (doc_id, url, *content, *declared.policy)):
        if columns.count(name) > 1:
            raise FormatError(f"{columns.count(name)} columns named {name}")
    return with_markup(replace(declared, id=doc_id, url=url, content=content))


def shown_names(columns: list[str]) -> str:
    """List the names of columns for a message. Long names are cut: without a header, they are the texts of a row."""
    names = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…" for name in columns[:MOST_NAMES]]
    more = ", …" if len(columns) > MOST_NAMES else ""
    is_row = any(len(name) > LONGEST_NAME for name in columns)
    return ", ".join(names) + more + (" (the first row must name the columns)" if is_row else "")
