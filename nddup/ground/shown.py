"""Text for display: harmless on a terminal, in a log and in a spreadsheet, and without secrets.

Names of files, ids, addresses and the details of rejects come from the data, so from anyone. A control character in one
can hide or forge lines on a terminal, one of direction makes a name look like another, and a spreadsheet executes a
cell that begins as a formula. `one_line` is for a value inside a line, `printable` for whole lines, `csv_line` for a
row. Ids in files for programs have escapes of their own (`escaped`), the same on both engines, and documents and sizes
are spelled here for both.

Secrets are settings of Spark, and the user and password of a URI; `clean` and `drop_login` remove them. A setting is
secret by Spark's own rule: `spark.redaction.regex` matches in its key or its value. A pattern that the user sets there
is added to Spark's default. The values of secret settings are remembered, so that a message of Java or Hadoop that
quotes one can be cleaned as well.
"""

import base64
import codecs
import csv
import html
import io
import json
import math
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO, TypeAlias

JsonValue: TypeAlias = Any
"""Whatever JSON holds."""

CONTROLS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+")
"""Control characters and line ends, which no id of a record has."""

ACTING = "".join(
    chr(code)
    for first, last in (
        (0x00, 0x1F), (0x7F, 0x9F),  # control characters
        (0x61C, 0x61C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069),  # of direction
        (0x2028, 0x2029),  # line and paragraph separators
    )
    for code in range(first, last + 1)
)  # fmt: skip
"""The characters that are never shown as they are."""

FORMULA = "=+-@\u2212"
"""First characters of a formula in a spreadsheet, also in another width or height (`＝`, `﹣`, `⁺`), which NFKD undoes.

U+2212 is the minus of mathematics."""

UNSEEN = frozenset("CMZ")
"""Categories of characters without a picture of their own: control and format, marks, blanks."""

FILLERS = "\u115f\u1160\u2800\u3164\uffa0\U0001d159"
"""Letters and symbols without a picture."""

IN_ASCII = {
    "─": "-", "█": "#", "·": ".", "…": "...", "×": "x", "—": "-", "–": "-", "≥": ">=", "≤": "<=", "’": "'", "“": '"',
    "”": '"', "→": "->",
}  # fmt: skip
"""Replacements for characters of nddup's own output that the terminal lacks."""

FEW = 10
"""Maximum number of ids that a message names."""

MOST_NAMED = 100
"""Maximum number of files in a list of the metrics."""

VERBS = {"have": "has", "are": "is", "were": "was", "do": "does"}
"""The singular of verbs that do not just take an s."""

ERRORS = "nddup.ground.shown"

_GAP = re.compile(r"(?<=\S) {2,}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ACTING = re.compile(f"[{re.escape(ACTING)}\ud800-\udfff]")
_ACTING_IN_LINES = re.compile(f"[{re.escape(ACTING.replace(chr(9), '').replace(chr(10), ''))}\ud800-\udfff]")

RULE = "spark.redaction.regex"

DEFAULT = "(?i)secret|password|token|access[.]?key|credential"
"""Spark's default in 4.3."""

HIDDEN = "*********(redacted)"
"""Replaces a secret, as in Spark."""

IN_PLANS = r"(?<=://)[^\s/?#:@]*:[^\s/?#]*(?=@)"
"""For `spark.redaction.string.regex`: matches the user and password of a URI in query plans, as in the event log."""

LEAST_REMEMBERED = 6
"""Minimum length of a secret that is replaced wherever it occurs: a shorter one may be part of a common word."""

CONTAINER_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""In URIs of these schemes the part before the @ is the name of a container, not a login."""

_SCHEME = r"\b([A-Za-z][A-Za-z0-9+.-]*)://"

# A login ends at the last @ before the path. A password may contain a slash: Java quotes it. `host:port/` is no login.
_LOGIN = re.compile(_SCHEME + r"(?:[^/?#]*|[^/@:]*:(?!\d+/).*)@", re.DOTALL)

_LOGIN_IN_TEXT = re.compile(_SCHEME + r"(?:[^\s/?#]*|[^\s/@:]*:(?!\d+/)\S*)@")

_ASSIGNMENT = re.compile(r"""\b((?:spark|fs)\.[\w.-]+)(["']?\s*[=:]\s*["']?)(?!expected\b|unknown\b)([^\s"',;]+)""")

_patterns: dict[str, re.Pattern[str]] = {DEFAULT: re.compile(DEFAULT)}

_remembered: set[str] = set()

FIRST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<romip:dataset xmlns:romip="http://www.romip.ru/data/common"><collection>nddup</collection>'
)

LAST = "</romip:dataset>"
"""The lines before and after the documents of a ROMIP file."""

NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold; in an id or an address they become U+FFFD."""

MOST_BYTES = (1 << 31) - 1
"""Bytes of the longest record: a Java array holds no more."""

UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def escape_character(character: str) -> str:
    r"""Return a character as Python would spell it in a string.

    Example:
        >>> [escape_character(one) for one in ("\n", "\x1b", "\u202e")]
        ['\\n', '\\x1b', '\\u202e']
    """
    return character.encode("unicode_escape").decode("ascii")


def one_line(value: object) -> str:
    r"""Return a value to be shown inside a line, with everything that would act escaped; None is empty.

    Example:
        >>> one_line("a\n\x1b[2J.txt")
        'a\\n\\x1b[2J.txt'
    """
    return "" if value is None else _ACTING.sub(lambda match: escape_character(match[0]), str(value))


def printable(text: str) -> str:
    """Return lines to be shown: as `one_line`, but ends of lines and tabs stay."""
    return _ACTING_IN_LINES.sub(lambda match: escape_character(match[0]), text)


def print_out(text: str) -> None:
    """Write lines to standard output, `printable`; on a terminal folded between words to its width."""
    _write_out(_folded(text, sys.stdout))


def print_error(text: str) -> None:
    """Write lines to standard error, as `print_out`; elsewhere than on a terminal an error stays one line."""
    sys.stderr.write(_folded(text, sys.stderr))


def _write_out(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, for example; Python names files only when they are opened
        raise OSError(error.errno, error.strerror, "standard output") from error


def _folded(text: str, stream: TextIO) -> str:
    text = printable(text)
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(fold(line, width) for line in text.split("\n"))
    return text


def print_data(text: str) -> None:
    """Write lines that a program may read to standard output, `printable` and never folded."""
    _write_out(printable(text))


def fold(line: str, width: int) -> str:
    r"""Return a line broken between words; what follows stands under its last column, or is indented.

    Example:
        >>> fold("  removed  12   each has a kept one", 24)
        '  removed  12   each has\n                a kept\n                one'
    """
    gaps = [gap.end() for gap in _GAP.finditer(line) if gap.end() <= width * 2 // 3]
    indent = " " * (gaps[-1] if gaps else min(len(line) - len(line.lstrip()) + 4, width // 2))
    folded = []
    while len(line) > width:
        at = line.rfind(" ", len(indent), width + 1)
        if at < 0 or not line[:at].strip():
            at = line.find(" ", width)
            if at < 0:
                break
        folded.append(line[:at].rstrip())
        line = indent + line[at:].lstrip()
    return "\n".join([*folded, line])


def as_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shorten(text: str, most: int) -> str:
    """Cut a text to so many characters; the last of a cut one is an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def spell_share(value: float | None) -> str:
    """Return a share with three decimals, cut, as in the report: none reaches a threshold that it does not.

    A value above 1 is a count. None is a dash.

    Example:
        >>> spell_share(0.7156), spell_share(1), spell_share(None), spell_share(1_200)
        ('0.715', '1.000', '-', '1,200')
    """
    if value is None:
        return "-"
    return f"{math.floor(value * 1_000 + 1e-6) / 1_000:.3f}" if value <= 1 else f"{value:,.0f}"


def spell_lost(value: float | None) -> str:
    """Return a share lost as a percentage, as in the report: a little is never shown as nothing. None is a dash.

    Example:
        >>> spell_lost(0.1251), spell_lost(0.0004), spell_lost(0), spell_lost(None)
        ('12.5%', '< 0.1%', '0.0%', '-')
    """
    if value is None:
        return "-"
    parts = math.ceil(value * 10_000 - 1e-9)
    return "< 0.1%" if 0 < parts < 10 else f"{parts / 100:.1f}%"  # noqa: PLR2004 - a tenth of a percent


def print_json(value: object) -> None:
    """Write a value to standard output, as `spell_json`."""
    _write_out(spell_json(value))


def spell_json(value: object) -> str:
    """Return a value as one line of JSON, in ASCII: harmless on a terminal.

    Numbers that are not finite are null; what JSON does not know is a text.
    """
    return json.dumps(_finite(value), default=str, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_line(values: Sequence[object]) -> str:
    r"""Return a row of a CSV file. None is an empty field; booleans are `true` and `false`.

    A text that a spreadsheet would take for a formula, perhaps after blanks, gets an apostrophe in front, and so does
    one that begins as if it had got one: `read_cell` gives the value back. Numbers are unchanged.

    Example:
        >>> csv_line(["=1+1", " ＝1", "-5", -5, True, None, "'@a"])
        "'=1+1,' ＝1,-5,-5,true,,''@a\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(  # it quotes a cell that holds a character of the line end
        ["" if value is None else str(value).lower() if isinstance(value, bool) else _cell(value) for value in values]
    )
    return f"{text.getvalue()[:-2]}\n"


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _is_formula(value) and not _NUMBER.fullmatch(value) else value


def _is_formula(text: str) -> bool:
    begun = text.lstrip("'")  # which `_cell` may have put there
    first = next((one for one in begun if unicodedata.category(one)[0] not in UNSEEN and one not in FILLERS), "")
    return begun.startswith(("\t", "\r")) or (bool(first) and unicodedata.normalize("NFKD", first)[0] in FORMULA)


def read_cell(text: str) -> str:
    """Return the value of a text cell that `csv_line` wrote; other cells are unchanged.

    Example:
        >>> [read_cell(text) for text in ("'=1+1", "''@a", "it", "'tis", "'-5")]
        ['=1+1', "'@a", 'it', "'tis", "'-5"]
    """
    return text[1:] if text.startswith("'") and _cell(text[1:]) == text else text


def print_in_any_encoding() -> None:
    """Let standard output and error show every text, whatever the encoding: ASCII for our own lines, else escapes."""
    codecs.register_error(ERRORS, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERRORS)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(IN_ASCII.get(one) or escape_character(one) for one in missing), error.end


def follow(settings: Iterable[tuple[str, object]]) -> None:
    """Apply the redaction rule of these settings from now on, and remember the secrets among them."""
    given = [(str(key), str(value)) for key, value in settings]
    for key, value in given:
        if key == RULE and value not in _patterns:
            try:
                _patterns[value] = re.compile(value)
            except re.error:  # valid in Java only: treat every setting as a secret
                _patterns[value] = re.compile("")
    for key, value in given:
        if _is_secret(key) and len(value) >= LEAST_REMEMBERED:
            _remembered.add(value)


def hide_setting(key: str, value: Any) -> Any:  # noqa: ANN401 - of YAML
    """Return the value of a setting without its secrets.

    Args:
        key: the full key, `section.key`, or Spark's own.

    Example:
        >>> hide_setting("spark.hadoop.fs.s3a.secret.key", "abc"), hide_setting("lexicon.saved", "ftp://me:abc@host/a")
        ('*********(redacted)', 'ftp://host/a')
    """
    is_of_spark = key.startswith("spark.")
    if is_of_spark and (_is_secret(key) or _is_secret(str(value))):
        return HIDDEN
    return drop_login(value) if isinstance(value, str) else value


def hide_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all sections of settings without their secrets; what is no section is one setting."""
    return {
        section: {key: hide_setting(key if section == "spark" else f"{section}.{key}", value)
                  for key, value in values.items()} if isinstance(values, Mapping) else hide_setting(section, values)
        for section, values in settings.items()
    }  # fmt: skip


def drop_login(uri: str) -> str:
    """Return a URI without its user and password, any other text unchanged.

    Example:
        >>> [drop_login(uri) for uri in ("ftp://me:abc@host:21/a@b", "hdfs://host:8020/a@b", "abfs://box@account/a")]
        ['ftp://host:21/a@b', 'hdfs://host:8020/a@b', 'abfs://box@account/a']
    """
    return _LOGIN.sub(_without_login, uri)


def clean(text: str) -> str:
    """Return a message without remembered secrets, values of secret settings, logins of URIs and acting characters.

    Example:
        >>> clean("no ftp://me:abc@host/a: fs.s3a.secret.key=abc is wrong")
        'no ftp://host/a: fs.s3a.secret.key=*********(redacted) is wrong'
    """
    for secret in sorted(_remembered, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _ASSIGNMENT.sub(lambda match: f"{match[1]}{match[2]}{HIDDEN}" if _is_secret(match[1]) else match[0], text)
    return printable(_LOGIN_IN_TEXT.sub(_without_login, text))


def _is_secret(text: str) -> bool:
    return any(pattern.search(text) for pattern in _patterns.values())


def _without_login(match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in CONTAINER_SCHEMES else f"{match[1]}://"


ESCAPES = (("\\", "\\\\"), *((character, escape_character(character)) for character in ACTING))
"""How `duplicates.txt` escapes characters of an id; all others are written unchanged. The backslash comes first."""

ESCAPED = f"[{re.escape(''.join(character for character, _ in ESCAPES))}]"
"""Matches a character that is escaped, in Python and in Java."""

_ESCAPED, _SPELLED = re.compile(ESCAPED), dict(ESCAPES)


def escaped(doc_id: str) -> str:
    """Return an id as it is written in `duplicates.txt`."""
    return _ESCAPED.sub(lambda match: _SPELLED[match[0]], doc_id)


_WRITTEN, _MEANT = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|.)"), {spelled: one for one, spelled in ESCAPES}


def unescaped(text: str) -> str:
    r"""Return the id that is written in `duplicates.txt`.

    Example:
        >>> unescaped(escaped("a\tb\\n")) == "a\tb\\n"
        True
    """
    return _WRITTEN.sub(lambda match: _MEANT.get(match[0], match[0]), text)


def without_brackets(doc_id: str) -> str:
    """Return an id without angle brackets around it, in which a Message-ID stands in mail.

    Example:
        >>> without_brackets("<1@a.org>"), without_brackets("1@a.org"), without_brackets("<>")
        ('1@a.org', '1@a.org', '<>')
    """
    return doc_id[1:-1] if doc_id.startswith("<") and doc_id.endswith(">") and doc_id != "<>" else doc_id


def clean_id(text: str) -> str:
    r"""Return an id on one line: each run of control characters and line ends is one blank, none at the ends.

    Nor is a byte order mark, which is left at the start of a line where files with one were joined.

    Example:
        >>> clean_id(" a\n\tb "), clean_id("\ufeffa")
        ('a b', 'a')
    """
    return CONTROLS.sub(" ", text).strip().strip("\ufeff").strip()


SPELLINGS = (without_brackets, unescaped, clean_id)
"""What makes the id of a document of one as mail, `duplicates.txt` or the collection spells it; the first counts."""


def spell_document(doc_id: str, url: str | None, content: str, fields: str = "") -> str:
    """Return a document as a line of ROMIP XML, with attributes, each after a blank.

    The content is base64 of UTF-8 with a byte order mark, which overrides any charset that its markup declares.
    """
    data = base64.b64encode(codecs.BOM_UTF8 + content.encode()).decode()
    address = "" if url is None else f"<docURL>{_text(url)}</docURL>"
    opened = f"<document{fields}><docID>{_text(doc_id)}</docID>{address}"
    return f'{opened}<content encoding="base64">{data}</content></document>'


def _text(value: str) -> str:
    return html.escape(NO_XML.sub("\ufffd", value), quote=False)


def parse_size(value: int | str, *, unit: str = "b", least: int = 1) -> int:
    """Return the number of bytes that a setting means; units are powers of 1024, with or without the letter B.

    Args:
        value: such as 64MB or 64m.
        unit: of a text without a unit.

    Raises:
        ValueError: if the text is not a number with an optional unit, or the size is less than `least`.

    Example:
        >>> parse_size("64MB") == parse_size("64m") == parse_size(64 << 20)
        True
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*+(\d{1,18})\s*+(?:([kmgtp])b?+|(b))?\s*+", value.lower())
        if not match:
            raise ValueError(f"expected bytes such as 64MB or 64m, got {value!r}")
        value = int(match[1]) * UNITS[match[2] or match[3] or unit]
    if value < least:
        raise ValueError(f"must be at least {counted(least, 'byte')}, got {value}")
    return value


def spell_size(size: int) -> str:
    """Write a file's size for people; here units are powers of 1000, as in programs that list files.

    Example:
        >>> spell_size(1), spell_size(640), spell_size(4_200), spell_size(3_300_000)
        ('1 byte', '640 bytes', '4 kB', '3.3 MB')
    """
    if size < 1_000:  # noqa: PLR2004 - a kilobyte
        return counted(size, "byte")
    return f"{size / 1e3:,.0f} kB" if size < 1_000_000 else f"{size / 1e6:,.1f} MB"  # noqa: PLR2004 - a megabyte


def name_some(ids: Sequence[str], number: int | None = None) -> str:
    """Return the first ids as a list for people, and how many more there are of `number`, or of the ids.

    Example:
        >>> name_some(["a", "b"], 5)
        'a, b and 3 more'
    """
    few, whole = ids[:FEW], number or len(ids)
    more = f" and {whole - len(few):,} more" if whole > len(few) else ""
    return f"{', '.join(few)}{more}"


def counted(count: int, name: str, verb: str = "") -> str:
    """Write a count of things, and the verb that follows, in the singular or the plural.

    Example:
        >>> counted(1, "file"), counted(1_200, "file"), counted(2, "family")
        ('1 file', '1,200 files', '2 families')
        >>> counted(1, "document", "have"), counted(2, "document", "hold"), counted(1, "document", "hold")
        ('1 document has', '2 documents hold', '1 document holds')
    """
    if count == 1:
        return f"{count:,} {name} {VERBS.get(verb, f'{verb}s')}" if verb else f"{count:,} {name}"
    many = f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in "aeiou" else f"{name}s"
    return f"{count:,} {many} {verb}" if verb else f"{count:,} {many}"
