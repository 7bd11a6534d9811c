"""Recognise the format of a collection file from its head: how to cut the file into records and how to read them.

    read_head   first bytes of a file -> FileHead

If no format is given, these are tried in order: JSON, by `{`, `[{`; romip, by its namespace; a declared format, by the
root element, if the file has records of that format; trec, by a DOC with a DOCNO or a REUTERS with a NEWID;
romip, by documents with a docID; else plain XML. In plain XML the record is the shallowest element, at most three
levels below the root, that has a usual name (document, doc, item, ...), or is repeated and has an id or holds half of
all elements, and that has a text (or, if `input.content` is set, an id); else the root, but its texts where they have
ids and it has none. Parts without an id of a document that has one are its texts. The id, URL and content of a record
are the children or attributes whose names come first in the lists of usual names (`xml_structure`), in any case, those
that are empty in the head last; the whole of a root that has a mere description.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from nddup.reading.charsets import SINGLE_BYTE, SURE_OF_UTF_8, canonical_charset, file_encoding, shown_encoding
from nddup.reading.chats import is_chat, texts_of
from nddup.reading.formats import FORMATS, FileHead, Format, FormatError, NoRecordsError, parse_path, split_field
from nddup.reading.json_pairs import UPDATED, is_paired, paired_rows
from nddup.reading.json_spread import MOST_LISTS, as_lines, find_lists
from nddup.reading.outcomes import untyped
from nddup.reading.xml_cutting import holds_separators
from nddup.reading.xml_structure import (
    BODY_NAMES,
    DESCRIPTIONS,
    ID_NAMES,
    RECORD_NAMES,
    SETTINGS,
    TASK_NAMES,
    TITLE_NAMES,
    URL_NAMES,
    Element,
    Shape,
    find_record,
    first_of,
    is_text,
    part_of_record,
    scan,
    shown_names,
    text_fields,
    with_markup,
)

TITLE_KEYS = "|".join(name for name in TITLE_NAMES if name not in ("@title", "titleinfo"))
"""The title of JSON lines whose first has none: the first of these keys that a line has."""

_TWEET, _TWEET_TEXT = {"id_str", "truncated", "text"}, "extended_tweet.full_text|text"
"""The keys of what the first interface of Twitter streamed, and its text: `text` alone is cut at 140 characters."""

MOST_LINES = 20
"""Lines of JSON after the first with a text that show whether what it lacks is empty in all."""

MOST_IDS = 100
"""Lines of JSON that show whether no two share what may be an id."""

_PAPER_IDS = ("paper_id", "cord_uid", "corpusid", "doi", "pmid", "pmcid", "arxiv_id", "article_id")
"""Ids of papers in JSON, if no two of the first records share one: else the records are parts of papers."""

_EXTRACTED = re.compile(
    r"\s*<doc id=\"[^\"<>]*\" (?:revid=\"[^\"<>]*\" )?url=\"[^\"<>]*\" title=\"[^\n]*>\r?\n\s*+[^\s<]"
)
"""The start of a file of WikiExtractor, whose texts need be no XML: a scan of its tags could mislead."""

_EXTRACTED_PARTS: dict[str, object] = {"record": "doc", "id": "@id", "url": "@url", "content": (".",)}

_OF_ACTION = "_id"
"""The id of a document in a file for Elasticsearch; without it, it has one of its own, as `id` may be."""

_BLANKS = " \t\r\ufeff"
_OBJECTS = json.JSONDecoder(strict=False)
_ROWS = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)  # `json.loads` would make one for each line
_JOINED = re.compile(r"\}[ \t]*+[{,]")
"""What may stand behind an object on its line: another one, or a comma. It may also stand in an object."""

_JSON = re.compile(r"\s*(\[\s*)?\{")
"""The start of objects of JSON, one a line or in an array."""


def read_head(
    head: bytes,
    *,
    format: str | None = None,  # noqa: A002 - the setting's name
    record: str | None = None,
    id: str | None = None,  # noqa: A002
    url: str | None = None,
    content: str | tuple[str, ...] | None = None,
    charset: str | None = None,
) -> FileHead:
    """Determine from the first bytes of a file how to cut and parse it.

    Args:
        head: the start of the file, decompressed; it may end anywhere.
        format: a name in FORMATS; None to detect.
        record: local name of the record element. If given, it overrides the format's, as do the next three.
        content: one path, several as a tuple, or several separated by commas. If given, the title fields of the format
            are not used.
        charset: the user's setting. It overrides the declaration of the file (not a byte order mark). If the content
            has its own encoding, as in romip, the setting applies to the content only and is not used here.

    Returns:
        The head. If the first record does not end inside `head`, the separator is a guess, `</tag>`: test
        `result.separator in head`, and read more if it must be exact.

    Raises:
        NoRecordsError: if no record starts in `head`, e.g. if it is empty.
        FormatError: if format, record or content cannot be determined; the message names the settings to give.

    Cost: linear in `head`, whatever it contains.
    """
    if format is not None and format not in FORMATS:
        raise FormatError(f"input.format: expected one of {', '.join(FORMATS)}, got {format!r}")
    if not head.strip():
        raise NoRecordsError("the file is empty")

    given = charset if format is None or not FORMATS[format].has_own_charset else None
    encoding, mark = _encoding_of(head, given)
    text = head[mark:].decode(encoding, "replace")
    settings = _settings(record, id, url, content)
    if format == "jsonl" or (format is None and _JSON.match(text)):
        return _json_head(head[mark:], encoding, settings, is_given=format is not None)

    if format is None and record is None and _EXTRACTED.match(text):
        declared = replace(FORMATS["xml"], **{**_EXTRACTED_PARTS, **settings})  # type: ignore[arg-type]
        why = "records <doc> of WikiExtractor"
        extracted = FileHead(declared, encoding, "</doc>".encode(encoding), "doc", is_root_record=True, why=why)
        return replace(extracted, is_indivisible=holds_separators(head[mark:], extracted))

    shape = scan(text)
    is_xml = format or record or text.lstrip().startswith("<")  # prose may show a sample of XML
    if not shape.elements and text.lstrip().startswith(("[", '"')) and _is_json(text):
        raise FormatError("JSON without objects; write an object a line, with the text under a key")
    if not shape.elements or not is_xml:
        raise FormatError(f"neither XML nor JSON lines; {SETTINGS}; as csv a file is a table, as text one document")
    name, why = (format, "input.format") if format else _detect(shape, record)
    if shape.is_prose and not (format or record) and FORMATS[name].name == "xml":
        raise FormatError(
            f"text outside of its elements: no XML; {SETTINGS}; input.format=text reads each file as a document"
        )
    of_file = file_encoding(head) if FORMATS[name].kind == "sgml" else _encoding_of(head, None)
    if FORMATS[name].has_own_charset and of_file != (encoding, mark):  # what was given is for the content, not the file
        encoding, mark = of_file
        text = head[mark:].decode(encoding, "replace")
        shape = scan(text)

    declared = replace(FORMATS[name], **settings)  # type: ignore[arg-type]
    if declared.kind == "sgml":
        return _sgml_head(text, declared, encoding, why)
    xml_head = _xml_head(shape, _complete(declared, shape), encoding, why)
    return replace(xml_head, is_indivisible=holds_separators(head[mark:], xml_head))


def _is_json(text: str) -> bool:
    """Return whether a text, or its first line, is a value of JSON; also one that is cut off at the end of the text."""
    start = text.lstrip()
    try:
        _, end = _OBJECTS.raw_decode(start)
    except json.JSONDecodeError as error:
        return start.startswith("[") and (error.pos >= len(start) - 1 or error.msg.startswith("Unterminated"))
    except RecursionError:
        return True
    return start[end:].lstrip(_BLANKS)[:1] in ("", "\n")


def _encoding_of(head: bytes, given: str | None) -> tuple[str, int]:
    """Return the encoding of a file and the length of its mark; without a setting and a mark, as its bytes show it.

    JSON and XML are UTF-8 by their standards: a few bytes that are not are damage, which is counted.
    """
    encoding, mark = file_encoding(head, given)
    return encoding if given or mark else shown_encoding(head, encoding, SURE_OF_UTF_8), mark


def _settings(
    record: str | None, id_: str | None, url: str | None, content: str | tuple[str, ...] | None
) -> dict[str, object]:
    paths = (content,) if isinstance(content, str) else content
    if isinstance(content, str) and not set("[(").intersection(content):
        paths = tuple(path.strip() for path in content.split(","))
    chosen = {"record": record and record.rpartition(":")[2], "id": id_, "url": url, "content": paths}
    settings: dict[str, object] = {key: value for key, value in chosen.items() if value}
    return {**settings, "title": ()} if paths else settings


def _check_paths(declared: Format) -> None:
    for path in declared.fields:
        for alternative in split_field(path)[1]:
            if len(parse_path(alternative)) != 1 and declared.kind == "sgml":
                raise FormatError(f"expected a path of one element name or @attribute in {declared.name}, got {path!r}")


# --- XML ---


def _detect(shape: Shape, record: str | None) -> tuple[str, str]:
    if record is not None:
        return "xml", "input.record"

    root = shape.elements[0]
    uri = next((uri for uri in root.namespaces.values() if "romip.ru" in uri), None)
    if uri is not None:
        return "romip", f"namespace {uri} of the root"
    for declared in FORMATS.values():
        is_root = any(tuple(path.split("/")) in shape.seen for path in declared.roots)
        if is_root and shape.records(declared.record):
            version = f" version={root.attributes['version']}" if "version" in root.attributes else ""
            return declared.name, f"root <{root.tag}{version}> and records <{declared.record}>"

    for element in shape.elements:
        names = tuple(name.upper() for name in element.path[-2:])
        if names == ("DOC", "DOCNO") or (names == ("REUTERS",) and "NEWID" in element.attributes):
            return "trec", f"records <{names[0]}> with {'a DOCNO' if names[0] == 'DOC' else 'a NEWID'}"
        if element.path[-2:] == ("document", "docID"):
            return "romip", "records <document> with a docID"
    return "xml", f"root <{root.tag}> belongs to no known format"


def _complete(declared: Format, shape: Shape) -> Format:
    """Fill in what neither the format nor the user has set: the record, then id, URL and content."""
    if declared.record:
        records = shape.records(declared.record)
        if not records:
            raise NoRecordsError(f"no <{declared.record}> in the first part of the file; set input.record")
        path = records[0].path
    else:
        path = _find_record(declared, shape)

    part = "" if declared.record or declared.content else part_of_record(shape, path)
    fields, filled = shape.fields(path), shape.filled(path)
    content = declared.content
    if not content:
        content = text_fields(fields, filled=filled)
        is_about = len(path) == 1 and bool(content) and content[-1].lower() in DESCRIPTIONS
        if (is_about and path[0].lower() not in RECORD_NAMES) or (not content and _is_text(path, shape)):
            content = (".",)  # what a file says of itself, the aim of a program or the units of a scan, is not its text
    if part:
        path = path[:-1]
        content, fields, filled = tuple(f"{part}/{name}" for name in content), shape.fields(path), shape.filled(path)
    if not content:
        raise FormatError(f"cannot tell which part of <{path[-1]}> is its text (seen: {', '.join(fields)}); {SETTINGS}")
    return with_markup(
        replace(
            declared,
            record=path[-1],
            id=declared.id or first_of(ID_NAMES, fields, filled),
            url=declared.url or first_of(URL_NAMES, fields, filled),
            content=content,
        )
    )


def _find_record(declared: Format, shape: Shape) -> tuple[str, ...]:
    """Find the path of the record; if there is none, the error names the format to which the root belongs."""
    try:
        return find_record(shape, needs_body=not declared.content)
    except FormatError as error:
        if _is_named_text(shape.elements[0]):
            return shape.elements[0].path
        root = shape.elements[0].path[0]
        known = next((other for other in FORMATS.values() if root in other.roots), None)
        if known is None:
            raise
        message = f"<{root}> is the root of {known.name}, but no <{known.record}> was seen; {SETTINGS}"
        raise NoRecordsError(message) from error


def _is_text(path: tuple[str, ...], shape: Shape) -> bool:
    is_named = _is_named_text(shape.elements[0]) if len(path) == 1 else path[-1].lower() in BODY_NAMES
    return is_named or is_text(shape, path)


def _is_named_text(root: Element) -> bool:
    """Return whether a root is a record and its text, as WikiExtractor writes it: `<doc id="12" url="…" title="…">`."""
    has_names = "id" in root.attributes and {"url", "title"} & root.attributes.keys()
    return root.path[0].lower() in RECORD_NAMES and bool(has_names)


def _xml_head(shape: Shape, declared: Format, encoding: str, why: str) -> FileHead:
    records: list[Element] = shape.records(declared.record)
    first = records[0]

    # The declarations on all elements around the record; inner ones override outer ones.
    namespaces: dict[str, str] = {}
    above = first.parent
    while above >= 0:
        namespaces = {**shape.elements[above].namespaces, **namespaces}
        above = shape.elements[above].parent

    # A prefix that the first record itself declares: others may have another prefix of the same namespace.
    prefix = first.tag.rpartition(":")[0]
    if prefix in first.namespaces:
        namespaces.setdefault(prefix, first.namespaces[prefix])

    ends = Counter(element.end_tag for element in records if element.end_tag)
    if not ends and all(element.is_empty for element in records):
        separator = "/>"
    else:
        separator = ends.most_common(1)[0][0] if ends else f"</{first.tag}>"
    _check_paths(declared)
    return FileHead(
        format=declared,
        encoding=encoding,
        separator=separator.encode(encoding),
        tag=first.tag,
        namespaces=tuple(sorted(namespaces.items())),
        is_root_record=first.parent < 0,
        why=why,
    )


# --- TREC ---


def _sgml_head(text: str, declared: Format, encoding: str, why: str) -> FileHead:
    """Return the head of an SGML file: tags are found in any case, and kept as spelled in the file."""
    names = re.escape(declared.record) or "DOC|REUTERS"
    start = re.search(rf"<({names})(?=[\s>])", text, re.IGNORECASE)
    if start is None:
        raise NoRecordsError(f"no <{declared.record or 'DOC'}> in the first part of the file; set input.record")
    end = re.search(rf"</{re.escape(start[1])}\s*+>", text, re.IGNORECASE)
    separator = end[0] if end else f"</{start[1]}>"
    _check_paths(declared)
    return FileHead(
        format=replace(declared, record=start[1]),
        encoding=encoding,
        separator=separator.encode(encoding),
        tag=start[1],
        why=why,
    )


# --- JSON lines ---


def _json_head(head: bytes, encoding: str, settings: Mapping[str, object], *, is_given: bool) -> FileHead:
    declared = replace(FORMATS["jsonl"], **settings)  # type: ignore[arg-type]
    can_be_lined = canonical_charset(encoding) in {"utf-8", *SINGLE_BYTE}
    row, is_spread, list_keys = _first_of_json(head, encoding, declared, can_be_lined=can_be_lined)
    if are_pairs := can_be_lined and is_paired(head):
        row, is_spread, list_keys = first_row(paired_rows(head, encoding)), False, ()
    keys, filled = list(row), _filled_in(row)
    if not keys and (not declared.content or "\n" not in head.decode(encoding, "replace").strip()):
        advice = (
            "; write an object a line"
            if can_be_lined
            else f"; an array, or objects over several lines, are not read in {encoding}"
        )
        raise FormatError(f"no line at its start is a JSON object{advice}")

    content = declared.content or _content_of_json(row, filled, are_pairs=are_pairs)
    doc_id = declared.id or first_of(ID_NAMES, keys, filled)
    if not doc_id and (name := first_of(_PAPER_IDS, filled)):
        lines = as_lines(head, list_keys) if is_spread else head
        ids = [str(one.get(name)) for one in islice(_rows_of(lines.decode(encoding, "replace").split("\n")), MOST_IDS)]
        doc_id = name if len(set(ids)) == len(ids) else None
    if are_pairs and not declared.id:
        doc_id = "|".join(dict.fromkeys((_OF_ACTION, doc_id or _OF_ACTION)))
    if doc_id and not declared.content and (size := _rows_in_columns(row.get(doc_id), row.get(content[-1]))):
        raise FormatError(
            f"{doc_id} and {content[-1]} are lists of {size:,}: columns of a table; write an object a row"
        )
    declared = replace(
        declared,
        record="",
        id=doc_id,
        url=declared.url or first_of(URL_NAMES, keys, filled),
        content=content,
    )
    begins = "begins with [{" if _is_listed(head.decode(encoding, "replace")) else "begins with {"
    begins = "begins with an action of Elasticsearch" if are_pairs else begins
    return FileHead(
        format=with_markup(declared),
        encoding=encoding,
        separator="\n".encode(encoding),
        is_indivisible=is_spread or are_pairs,
        is_by_line=True,
        is_paired=are_pairs,
        is_spread=is_spread,
        list_keys=list_keys,
        why="input.format" if is_given else f"{'.'.join(list_keys)} is [{{" if list_keys else begins,
    )


def _content_of_json(row: Mapping[str, object], filled: list[str], *, are_pairs: bool) -> tuple[str, ...]:
    content = text_fields(list(row), _chats_of(row), filled)
    if not content:
        raise FormatError(f"cannot tell which key holds the text (seen: {shown_names(_paths_in(row))}); {_advice(row)}")
    if content == ("text",) and set(row) >= _TWEET:
        content = (_TWEET_TEXT,)
    elif content[-1].lower() in TASK_NAMES:  # other lines may have more of them
        title = content[:1] if content[0].lower() in TITLE_NAMES else ()
        spelled = {name.lower(): name for name in content}
        content = (*title, *(spelled.get(name, name) for name in TASK_NAMES))
    elif len(content) == 1 or content[0] not in filled:
        content = (TITLE_KEYS, content[-1])  # other lines may have a title
    if are_pairs:
        content = tuple("|".join([field, *(UPDATED + path for path in field.split("|"))]) for field in content)
    return content


def _advice(row: Mapping[str, object]) -> str:
    """Return what to do with an object in which no key holds the text, where its arrays or values may be records."""
    array = next((key for key, value in row.items() if text_fields(_keys_in(value))), "")
    if array:
        return f"write the objects of {array} one a line"
    inner = dict[str, list[str]]()
    for key in row:
        inner.setdefault(key.partition(".")[0], []).append(key.partition(".")[2])
    if text_fields(list(inner)) or {"columns", "data"} <= inner.keys():
        return "columns of a table; write an object a row"
    if sum(1 for names in inner.values() if text_fields(names)) > 1:
        return "its values may be records; write them one a line, each with its key"
    return "set input.content and input.id"


def _paths_in(row: Mapping[str, object]) -> list[str]:
    """Return the keys of a row for a message, also those of objects in arrays; of a large object one."""
    inner = Counter(key.partition(".")[0] for key in row)
    paths = [key if inner[key.partition(".")[0]] <= MOST_LINES else f"{key.partition('.')[0]}.…" for key in row]
    lists = {key: _keys_in(value) for key, value in row.items()}
    lists = {key: [f"{key}.{inner}" for inner in keys] for key, keys in lists.items() if not text_fields(keys)}
    return [name for key in dict.fromkeys(paths) for name in lists.get(key) or [key]]


def _keys_in(value: object) -> list[str]:
    """Return the keys of the first object in an array; none for any other value."""
    first = value[0] if isinstance(value, list) and value else None
    return list(first) if isinstance(first, dict) else []


def _first_of_json(
    head: bytes, encoding: str, declared: Format, *, can_be_lined: bool
) -> tuple[dict[str, object], bool, tuple[str, ...]]:
    """Return the fields of the first record, whether a `LinedStream` shows it, and the keys of the array it stands in.

    An object that has an id or a text of its own is a record, whatever arrays it holds; one that has a mere description
    is, unless theirs have texts.
    """
    text = head.decode(encoding, "replace")
    row = {} if _is_listed(text) else first_row(text.split("\n"))
    if not can_be_lined:
        return row, False, ()

    spread = first_row(as_lines(head).decode(encoding, "replace").split("\n")) if not row or _are_joined(text) else {}
    row, is_spread = spread or row, bool(spread)
    body = _body_of(row, declared)
    is_described = body.lower() in DESCRIPTIONS
    if _is_listed(text) or (body and not is_described) or first_of(ID_NAMES, _filled_in(row)):
        return row, is_spread, ()

    paths = islice(dict.fromkeys(keys for keys, _ in find_lists(head)), MOST_LISTS)
    lists = [(_first_in(head, keys, encoding), True, keys) for keys in paths]
    for one in lists:
        inner = _body_of(one[0], declared)
        if inner and not (is_described and inner.lower() in DESCRIPTIONS):
            return one
    is_unknown = bool(lists and not body and not declared.content)  # then a message names what these objects have
    return lists[0] if is_unknown else (row, is_spread, ())


def _first_in(head: bytes, keys: tuple[str, ...], encoding: str) -> dict[str, object]:
    return first_row(as_lines(head, keys).decode(encoding, "replace").split("\n"))


def _is_listed(text: str) -> bool:
    start = _JSON.match(text)
    return start is not None and start[1] is not None


def _body_of(row: Mapping[str, object], declared: Format) -> str:
    """Return which field of an object holds its text; empty if none does."""
    if declared.content:
        return next((path for field in declared.content for path in split_field(field)[1] if path in row), "")
    return next(iter(text_fields(list(row), _chats_of(row), _filled_in(row))[-1:]), "")


def are_lines(start: bytes, head: FileHead) -> bool:
    """Return whether at least half of the first lines of a file are JSON objects: a text may begin with a brace."""
    lines = start.decode(head.encoding, "replace").split("\n")[: MOST_LINES + 1]
    whole = [line for line in lines[:-1] or lines if line.strip()]
    return 2 * sum(1 for _ in _rows_of(whole)) >= len(whole)


def first_row(lines: list[str]) -> dict[str, object]:
    """Return the fields of the first line that is a JSON object with a text, and other fields of those before it.

    A key counts as a text by its name (`text_fields`), unless it is empty. Without such a line these are the fields of
    all lines. The keys of a nested object are dotted (`meta.url`). What is empty in that line, an id and an address
    that it lacks are looked for in MOST_LINES after it.

    Example:
        >>> list(first_row(['{"id": 1, "error": "none"}', '{"text": "a", "id": 2}']))
        ['text', 'id', 'error']
    """
    whole: dict[str, object] = {}
    rows = _rows_of(lines)
    for fields in rows:
        text = text_fields(list(fields), _chats_of(fields), _filled_in(fields))[-1:]
        whole = _completed(fields, whole) if text else _completed(whole, fields)
        if any(_is_filled(fields[name]) for name in text):
            break
    for fields in islice(rows, MOST_LINES):
        filled = _filled_in(whole)
        if len(filled) == len(whole) and all(first_of(names, filled) for names in (ID_NAMES, URL_NAMES)):
            break
        named = {first_of(names, _filled_in(fields)) for names in (ID_NAMES, URL_NAMES) if not first_of(names, filled)}
        whole = _completed(whole, {key: value for key, value in fields.items() if key in whole or key in named})
    return whole


def _rows_in_columns(ids: object, texts: object) -> int:
    """Return how many rows an object holds by columns, as tables are written as dictionaries; 0 if it is a record."""
    sizes = {len(values) for values in (ids, texts) if isinstance(values, list)}
    is_table = isinstance(ids, list) and isinstance(texts, list) and not is_chat(texts) and len(sizes) == 1
    return max(sizes) if is_table and max(sizes) > 1 else 0


def _are_joined(text: str) -> bool:
    """Return whether on some line another object follows one, or a comma, as in `{"a": 1}{"a": 2}`. Linear."""
    for line in text.split("\n") if _JOINED.search(text) else ():
        with suppress(ValueError, RecursionError):
            start = line.strip(_BLANKS)
            row, end = _OBJECTS.raw_decode(start) if _JOINED.search(line) else (None, 0)
            if isinstance(row, dict) and start[end:].lstrip(_BLANKS)[:1] in ("{", ","):
                return True
    return False


def _completed(row: Mapping[str, object], other: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a row; those that it lacks, or that are empty in it, are those of another."""
    return {**row, **{key: value for key, value in other.items() if key not in row or not _is_filled(row[key])}}


def _rows_of(lines: list[str]) -> Iterator[dict[str, object]]:
    for line in lines:
        try:
            row = _ROWS.decode(line) if "{" in line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            row |= {key: untyped(value) for key, value in row.items() if key.lower() in ID_NAMES}
            yield {
                name: field
                for key, value in row.items()
                for name, field in (
                    [(f"{key}.{inner}", value[inner]) for inner in value] if isinstance(value, dict) else [(key, value)]
                )
            }


def _filled_in(row: Mapping[str, object]) -> list[str]:
    return [key for key, value in row.items() if _is_filled(value)]


def _is_filled(value: object) -> bool:
    return any(text.strip() for text in texts_of(value))


def _chats_of(row: Mapping[str, object]) -> list[str]:
    return [key for key, value in row.items() if is_chat(value)]
