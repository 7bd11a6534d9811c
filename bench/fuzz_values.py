"""Fuzz what is read before and beside records: heads of files, declarations, lists, WARC, CSV, Parquet, markup.

    READERS    each with samples, and with fragments that are worst for its patterns when repeated
    fuzz       endless cases: damaged samples, fragments in any order, fragments repeated
    seconds    CPU time of a reader; past a limit it is stopped, so that a hang is reported and not waited for

A reader gives a value or the one error that it declares; anything else, and a time out of proportion, is a fault.
"""

import io
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import pyarrow as pa

from bench import fuzz_samples as made
from bench.fuzz_samples import TOKENS, mutate
from nddup.ground.shown import parse_size
from nddup.mining.fimi import read_fimi
from nddup.reading.charsets import canonical_charset, declared_charset, decode_content
from nddup.reading.containers import container_head, read_container
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, FormatError, parse_path, split_field
from nddup.reading.markup import main_text, read_unknown, strip_markup
from nddup.reading.outcomes import Reject, decode_base64, make_record
from nddup.reading.page_limits import MAX_ATTRIBUTES
from nddup.reading.records import parse_record, record_text
from nddup.reading.reference_lists import LayoutError, guess_layout, lines_of, read_lines
from nddup.reading.streams import Expanded, StoppedError, compression_of, cut_pieces, expand_head, reject_parts
from nddup.reading.xml_records import escape_ampersands

ALLOWED, ALLOWED_A_BYTE = 0.25, 10e-6
"""CPU seconds of a case, and more for each byte: linear work takes a tenth, other work minutes for some 100 KB."""

MOST_BYTES = 16_384
"""Bytes of a repetition within a case; a case has at most twice as many."""

REPEATED_BYTES = 262_144
"""Bytes of a fragment repeated on its own."""

MAX_RECORD = 1 << 16

Read = Callable[[bytes, random.Random], object]


class _OverlongError(BaseException):
    """A reader takes too long; no reader catches this."""


@dataclass(frozen=True)
class Reader:
    """A function that reads foreign bytes; `refusals` are the errors that it may raise."""

    name: str
    read: Read
    samples: tuple[bytes, ...]
    fragments: tuple[bytes, ...]
    refusals: tuple[type[Exception], ...] = ()


@dataclass
class Seen:
    """Counts of a run, and its slowest case."""

    cases: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    slowest_at: str = ""


def allowed(size: int) -> float:
    """Return the CPU seconds allowed for `size` bytes."""
    return ALLOWED + ALLOWED_A_BYTE * size


def seconds(work: Callable[[], object], limit: float) -> float:
    """Return the CPU seconds of `work`; infinite past `limit`, where a signal stops it, also within a pattern match."""

    def stop(*_: object) -> None:
        raise _OverlongError

    before = signal.signal(signal.SIGVTALRM, stop)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        work()
    except _OverlongError:
        return inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - started


# --- The readers ---

XML = read_head(b"<r><doc><id>1</id><text>a</text></doc></r>")
TREC = read_head(b"<DOC><DOCNO>1</DOCNO><TEXT>a</TEXT></DOC>")
ROWS = read_head(b"<r>\n<row Id='1' Body='a'/>\n</r>")
NAMES = ("a", "a.csv", "a.tsv.gz", "a.html", "b/a.xht", "www.a.b:80/x.htm", "a.csv\n")
DEEP = b"<i>" * 1100
FORMATS_CUT = tuple(name for name, declared in FORMATS.items() if declared.kind in ("xml", "sgml", "jsonl"))
LABELS = (None, None, None, "koi8-r", "utf-16", "utf-8", "x", "")
FIELDS = (None, None, None, "text", "a/b", "@id", "html(a|b)", "a[@x=y]", "a(b", "a+", "[", "text,id", ".")


def _head(data: bytes, choose: random.Random) -> object:
    names = ("record", "id", "url", "content") if choose.randrange(2) else ()
    given: dict[str, Any] = {name: choose.choice(FIELDS) for name in names}
    given["format"] = choose.choice(FORMATS_CUT) if choose.randrange(2) else None
    return read_head(data, charset=choose.choice(LABELS), **given)


def _container_head(data: bytes, choose: random.Random) -> object:
    options: dict[str, Any] = {"id": None, "url": None, "content": None, "charset": choose.choice(LABELS)}
    if choose.randrange(4) == 0:
        options |= {"id": choose.choice(FIELDS), "content": choose.choice((None, ("text",), ("a", "b")))}
    return container_head(data, choose.choice(NAMES), choose.choice((None, None, None, "csv", "html", "warc")), options)


def _contained(kind: str) -> Read:
    declared = replace(FORMATS[kind], id="id", content=("text",)) if kind != "warc" else FORMATS[kind]
    head = FileHead(format=declared, encoding="utf-8", separator=b",")

    def read(data: bytes, choose: random.Random) -> object:
        del choose
        found = read_container(
            io.BytesIO(data), head, source="www.a.b/c", compression="", limit=None, max_record=MAX_RECORD
        )
        return [record if isinstance(record, Reject) else (record, record_text(record)) for record in found]

    return read


def _expanded(data: bytes, choose: random.Random) -> object:
    expand_head(data, choose.choice((1, 100, MAX_RECORD)))
    stream = Expanded(io.BytesIO(data), compression_of(data), 1 << 18)
    most, unit = choose.choice((3, 1000)), choose.choice((1, 2))
    return list(reject_parts(cut_pieces(stream, choose.choice((b"\n", b"</doc>", b"a")), max_record=most, unit=unit)))


def _reference(data: bytes, choose: random.Random) -> object:
    pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    lines = list(lines_of(pieces))
    given: dict[str, Any] = {
        "kind": choose.choice((None, None, "pairs", "groups")),
        "header": choose.choice((None, None, True, False)),
        "score": choose.choice((None, None, "none", "3", "\u00b2", "x")),
    }
    layout = guess_layout(lines, **given)
    read = read_lines(lines, layout)
    return pa.array(read.members, pa.list_(pa.string())), pa.array(read.scores, pa.float64())


def _fimi(data: bytes, choose: random.Random) -> object:
    size = choose.randrange(1, 9)
    return len(read_fimi(data[at : at + size] for at in range(0, len(data), size)).names)


def _text(work: Callable[[str], object]) -> Read:
    return lambda data, _: work(data.decode("utf-8", "replace"))


def _record(head: FileHead, start: bytes) -> Read:
    def read(data: bytes, choose: random.Random) -> object:
        return parse_record(start + data, head, is_last=choose.randrange(2) == 0)

    return read


def _plain(work: Callable[[bytes], object]) -> Read:
    return lambda data, _: work(data)


READERS = (
    Reader("head", _head, made.HEADS, made.TAGS, (FormatError,)),
    Reader("head of a container", _container_head, made.HEADS, made.TAGS, (FormatError,)),
    Reader("charset declared", _plain(declared_charset), (made.PAGE,), made.TAGS),
    Reader("charset of content", _plain(decode_content), (made.PAGE,), made.TAGS),
    Reader("charset label", _text(canonical_charset), (b" Windows-1251 ", b"latin1"), made.TAGS),
    Reader("text of unknown kind", _text(read_unknown), (made.PAGE,), made.TAGS_OF_PAGES),
    Reader("text of a page", _plain(strip_markup), (made.PAGE,), made.TAGS_OF_PAGES),
    Reader("text of a deep page", _plain(lambda data: strip_markup(DEEP + data)), (made.PAGE,), made.TAGS_OF_PAGES),
    Reader("main text of a page", _plain(main_text), (made.PAGE,), made.TAGS_OF_PAGES),
    Reader("record", _record(XML, b"<doc>"), made.HEADS[:2], made.TAGS),
    Reader("before a record", _record(XML, b""), made.HEADS[:2], made.TAGS),
    Reader("row", _record(ROWS, b"<row "), made.HEADS[1:2], made.TAGS),
    Reader("record of TREC", _record(TREC, b"<DOC>"), made.HEADS[2:4], made.TAGS),
    Reader("ampersands", _plain(escape_ampersands), made.HEADS[:2], made.TAGS),
    Reader("list", _reference, made.LISTS, made.SEPARATORS, (LayoutError,)),
    Reader("WARC", _contained("warc"), (made.WARC,), made.LINES_OF_WARC),
    Reader("CSV", _contained("csv"), made.TABLES, made.SEPARATORS),
    Reader("Parquet", _contained("parquet"), made.PARQUET, (b"PAR1", b"\0", b"\x15", b"\xff")),
    Reader("packed stream", _expanded, made.PACKED, (b"\0", b"a", b"</doc>", *made.PACKED[:2])),
    Reader("FIMI", _fimi, (b"1 2 3\n2 3\n",), (b"1", b" ", b"\n", b"\r", b"\0"), (ValueError,)),
    Reader("path", _text(parse_path.__wrapped__), made.PATHS, made.STEPS, (FormatError,)),
    Reader("field", _text(split_field.__wrapped__), made.PATHS, made.STEPS),
    Reader("size", _text(parse_size), (b"64MB", b" 1 gb "), (b"1", b" ", b"mb", b"\xd9\xa1"), (ValueError,)),
    Reader("base64", _text(decode_base64), (b"YWJj", b" YW Jj ZA"), (b"Y", b"=", b" ", b"\n", b"*")),
    Reader("id and address", _text(lambda text: make_record(text, text, [("a", None)])), made.HEADS, made.TAGS),
)


# --- The cases ---


def made_case(number: int, seed: int) -> tuple[Reader, bytes, random.Random]:
    """Return a case by its number: the reader, its bytes, and the source of the reader's random settings."""
    choose = random.Random(f"{seed}/{number}")  # noqa: S311 - repeatable from the number
    reader = READERS[choose.randrange(len(READERS))]
    pieces = reader.fragments if choose.randrange(4) else (*reader.fragments, *TOKENS)
    way = choose.randrange(4)
    if way < 2:  # noqa: PLR2004 - half of the cases
        data = mutate(choose.choice(reader.samples), reader.samples, choose)
    else:
        data = b"".join(choose.choices(pieces, k=choose.choice((1, 3, 10, 40))))
    if way % 2:  # repeats something in the middle
        repeated = b"".join(choose.choices(pieces, k=choose.choice((1, 1, 2, 3))))
        at = choose.randrange(len(data) + 1)
        times = choose.choice((10, 100, MOST_BYTES)) // len(repeated)
        data = data[:at] + repeated * times + data[at:]
    return reader, data[: 2 * MOST_BYTES], choose


def read_case(name: str, reader: Reader, data: bytes, choose: random.Random, seen: Seen) -> None:
    """Read one case, and once more if it was too slow.

    Raises:
        RuntimeError: naming the case, if the reader raises an undeclared error, or takes too long twice.
    """

    def work() -> None:
        try:
            reader.read(data, choose)
        except (*reader.refusals, StoppedError):  # type: ignore[misc] # a tuple of exceptions
            seen.refused[reader.name] += 1

    seen.cases[reader.name] += 1
    where = f"{name}, {reader.name}, {len(data):,} bytes"
    try:
        # CPU time of the whole process: another thread or the garbage collector may have used it, but not twice.
        taken = seconds(work, allowed(len(data)))
        taken = taken if taken < allowed(len(data)) else seconds(work, allowed(len(data)))
    except Exception as error:
        raise RuntimeError(f"{where}: {error!r}") from error
    if taken > allowed(len(data)):
        raise RuntimeError(f"{where}: took more than {allowed(len(data)):.2f} s")
    if taken > seen.slowest:
        seen.slowest, seen.slowest_at = taken, where


def warm_up() -> None:
    """Read the sound samples, so that what is compiled or loaded at first use is not part of a case."""
    strip_markup("<b>" * 20_000)
    strip_markup(b" " * (5 * MAX_ATTRIBUTES))
    for reader in READERS:
        for sample in reader.samples:
            with suppress(*reader.refusals):
                reader.read(sample, random.Random(0))  # noqa: S311


def fuzz_repeats() -> int:
    """Read each fragment of each reader repeated, alone and behind a sample; return the number of cases.

    Raises:
        RuntimeError: naming the case that fails.
    """
    warm_up()
    seen = Seen()
    for reader in READERS:
        for fragment in reader.fragments:
            for start in (b"", reader.samples[0]):
                data = start + fragment * (REPEATED_BYTES // len(fragment))
                read_case(f"{fragment!r} repeated", reader, data, random.Random(1), seen)  # noqa: S311
    return seen.cases.total()


def fuzz_values(cases: int, seed: int) -> Seen:
    """Read `cases` cases. Raises RuntimeError, naming the case that fails."""
    warm_up()
    seen = Seen()
    for number in range(cases):
        reader, data, choose = made_case(number, seed)
        read_case(f"case {number} of seed {seed}", reader, data, choose, seen)
    return seen
