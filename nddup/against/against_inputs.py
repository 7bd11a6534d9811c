"""The two collections of `nddup against`: their files, and the items of B with their shingles."""

import posixpath
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.share_records import ReadItems
from nddup.against.shingle_table import MOST_BYTES, Known, make_known, open_known
from nddup.embedded.collapse import number_in_file
from nddup.embedded.memory import Memory
from nddup.embedded.read_records import list_silent
from nddup.embedded.workers import Workers, in_collection_order
from nddup.engines.engine import Engine
from nddup.errors import ConfigError
from nddup.ground.columns import pieces_of
from nddup.scanning.collection import Collection, Files
from nddup.scanning.found import text_buffers
from nddup.scanning.input_files import local_path
from nddup.settings.plan import record_limits, text_rule
from nddup.settings.schema import Config
from nddup.stages.inputs_found import find_inputs
from nddup.stages.losses import require_few_losses, require_readable
from nddup.storage.local_storage import is_local
from nddup.tables.features import REJECTED

By = Literal["source", "folder"]

OF_TEXT, OF_SHINGLES = 3, 40
"""Bytes of memory per byte of the items: for their texts, and for the table of a part while it is made."""


@dataclass(frozen=True)
class Side:
    """One of the two collections.

    Attributes:
        path: its path as the user gave it.
        config: settings for reading them.
        labels: source -> the part of the matrix that it belongs to.
    """

    path: str
    collection: Collection
    config: Config
    labels: dict[str, str]

    @property
    def parts(self) -> list[str]:
        """The distinct labels, sorted."""
        return sorted(set(self.labels.values()))

    def places_of(self, sources: Sequence[str]) -> NDArray[np.int64]:
        """Return the place in `parts` of each source's part, (n,)."""
        places = {label: place for place, label in enumerate(self.parts)}
        return np.array([places[self.labels[source]] for source in sources], np.int64)


class Part(NamedTuple):
    """The shingles of consecutive items: the first item, their table, and the folder where it is saved."""

    low: int
    known: Known
    folder: Path


@dataclass(frozen=True)
class Items:
    """The m documents of B.

    Attributes:
        ids: unique id of each; `source#record` if the record has none, or an earlier record has the same id.
        parts: their shingles, in parts of consecutive items.
        renamed: number of items renamed because an earlier item has the same id.
    """

    ids: list[str]
    sources: list[str]
    texts: list[str]
    parts: tuple[Part, ...]
    rejects: pa.Table
    renamed: int

    @property
    def tables(self) -> list[Known]:
        """The table of shingles of each part."""
        return [part.known for part in self.parts]

    def part_of(self, item: int) -> Part:
        """Return the part that contains an item."""
        return self.parts[bisect_right([part.low for part in self.parts], item) - 1]


def find_side(path: str, config: Config, by: By, files: Files) -> Side:
    """Find the files of a collection.

    Raises:
        ConfigError: if there is no such file or folder, or none that can be read.
        NddupError: if more files than `input.max_unreadable` cannot be opened.
    """
    collection = find_inputs(files, [path], config)
    require_readable(collection.unread, config.input.max_unreadable)
    is_folder = _is_folder(path, collection)
    labels = {
        file.source: _label(path, file.source, is_folder=is_folder, by=by) for file in collection.listing.files
    }  # fmt: skip
    return Side(path, collection, config, labels)


def _is_folder(path: str, collection: Collection) -> bool:
    """Return whether a path is a folder, so that the path of a file is this path followed by the file's source."""
    if is_local(path):
        return Path(local_path(path)).is_dir()
    return any(
        unquote(file.path).endswith(f"{path.rstrip('/')}/{file.source}") for file in collection.listing.files[:1]
    )


def _label(path: str, source: str, *, is_folder: bool, by: By) -> str:
    if by == "source":
        return source
    return posixpath.join(path, posixpath.dirname(source)).rstrip("/") if is_folder else path


def read_items(side: Side, length: int, workers: Workers, spool: Path) -> Items:
    """Read the items and make tables of their shingles, in parts if the table of all does not fit in memory.

    Args:
        side: B.
        length: number of tokens in a shingle.
        workers: read the records; their memory limit bounds the size of a part.
        spool: folder of this machine for the tables.

    Raises:
        ConfigError: if no document can be read.
        NddupError: if more records than `input.max_rejects` cannot be read.
        CapacityError: for more than 2**31 shingles.
        NeedsSparkError: if the texts and the table of the longest item need more than `local.memory`.
    """
    rows = in_collection_order(
        workers.scan(side.collection, ReadItems(text_rule(side.config)), record_limits(side.config)), side.collection
    )
    records = number_in_file(rows["source"])
    is_good = pc.is_null(rows["reason"])
    rejects = gather_rejects("B", rows, records, ~is_good.to_numpy(), side)
    good = rows.filter(is_good)
    require_few(side, len(good), good["source"], rejects)
    sources, texts = good["source"].to_pylist(), good["text"].to_pylist()
    ids, renamed = _distinct(good["doc_id"].to_pylist(), sources, records[is_good.to_numpy()].tolist())
    parts = tuple(make_parts(texts, length, workers.memory, spool, side.config.tokens.ignored))
    return Items(ids, sources, texts, parts, rejects, renamed)


def make_parts(texts: list[str], length: int, memory: Memory, spool: Path, ignore: tuple[str, ...]) -> Iterator[Part]:
    """Yield the tables, saved and memory-mapped, so that only the table being made takes memory."""
    sizes = np.fromiter((len(text.encode("utf-8", "surrogatepass")) for text in texts), np.int64, len(texts))
    of_texts, longest = OF_TEXT * int(sizes.sum()), OF_SHINGLES * int(sizes.max(initial=0))
    memory.require(of_texts + longest, f"the shingles of the {len(texts):,} items")
    room = MOST_BYTES if memory.given is None else int((memory.given - memory.bytes_in_use - of_texts) / OF_SHINGLES)
    for number, rows in enumerate(pieces_of(sizes, min(room, MOST_BYTES))):
        folder = spool / f"shingles-{number}"
        folder.mkdir()
        make_known(*text_buffers(texts[rows]), length, ignore=ignore).save(folder)
        yield Part(rows.start, open_known(str(folder)), folder)


def require_few(side: Side, documents: int, sources: pa.ChunkedArray, rejects: pa.Table) -> None:
    """Refuse a collection without documents, where every item would be clean, or with more rejects than allowed."""
    if not documents:
        row = next(iter(rejects.slice(0, 1).to_pylist()), None)
        why = f": {row['source']}: {row['reason']} ({row['detail']})" if row else ""
        raise ConfigError(f"{side.path}: no document can be read{why}")

    def ask() -> Engine:
        from nddup.engines.duck import DuckEngine  # noqa: PLC0415 - a tenth of a second to load

        return DuckEngine.over(side.path, documents=pa.table({"source": sources}), rejects=rejects)

    require_few_losses(ask, documents, reasons(rejects), side.config.input, side.collection)


def _distinct(ids: list[str | None], sources: list[str], records: list[int]) -> tuple[list[str], int]:
    """Return unique names of the items, and how many were renamed; the first record with an id keeps it."""
    taken = {one for one in ids if one is not None}
    seen: set[str] = set()
    named, renamed = [], 0
    for one, source, record in zip(ids, sources, records, strict=True):
        name = one
        if name is None or name in seen:
            renamed += name is not None
            name = f"{source}#{record}"
            while name in seen or name in taken:
                name += "+"
        seen.add(name)
        named.append(name)
    return named, renamed


def gather_rejects(
    collection: str,
    rows: pa.Table,
    records: NDArray[np.int64],
    is_bad: NDArray[np.bool_],
    side: Side,
    read: pa.Table | None = None,
) -> pa.Table:
    """Return REJECTED with the bad rows and the files without any row; `read`: all rows read, if not `rows`."""
    bad = rows.append_column("record", pa.array(records)).filter(pa.array(is_bad))
    silent = list_silent(side.collection, rows if read is None else read)
    columns = [name for name in REJECTED.names if name != "collection"]
    both = pa.concat_tables([bad.select(columns).cast(silent.schema), silent.select(columns)])
    return both.add_column(0, "collection", pa.array([collection] * len(both), pa.string())).cast(REJECTED.arrow)


def reasons(rejects: pa.Table) -> dict[str, int]:
    """Count the rejects of each reason."""
    counted = rejects.group_by("reason").aggregate([([], "count_all")])
    return dict(zip(counted["reason"].to_pylist(), counted["count_all"].to_pylist(), strict=True))
