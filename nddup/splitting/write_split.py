"""Split a finished run, and write its folder.

    asked, run   --see_asked-->     `fixed`, `earlier`, `by_columns`, `strata`, as the stage reads them
                 --split_units-->   SPLIT, SHARES
    these        --tell-->          counts and lines for people

Columns of --by that the run did not store are read from its inputs again. The folder holds split/ and shares/, the
tables; train/, test/, …, the records of each part, in their own format, byte for byte where that allows; and
_SPLIT.json, the run and how it was split, for `nddup check`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.embedded.rewrite import Rewriter, in_order
from nddup.embedded.workers import Workers
from nddup.engines.engine import EngineTable, FinishedRun, find_ids
from nddup.errors import ConfigError
from nddup.ground.shown import counted, name_some
from nddup.reading.id_lists import require_known, require_one
from nddup.results.opening import find_inputs_again, open_here, read_columns_with
from nddup.rewriting.rewrite_file import can_rewrite
from nddup.scanning.collection import Files
from nddup.settings.load import read_stored
from nddup.settings.plan import processes_of, record_limits, threshold_of
from nddup.settings.schema import Config
from nddup.sketching.accuracy import say_missed
from nddup.splitting.assign_units import Parts
from nddup.stages.inputs_found import Again, config_of, paths_of, read_list_of
from nddup.stages.split_units import SplitRule, split_units
from nddup.storage.local_folder import write_tables
from nddup.storage.local_storage import LocalStorage, is_local, local_path, require_new, written_apart
from nddup.storage.run_folder import RunFolder
from nddup.tables import CAPTURE
from nddup.tables.features import SPLIT_TABLES

STORED = ("source", "url", *(column.name for column in CAPTURE))
"""Columns of `documents` that --by may name; one that is null in all documents is read from the records."""

MOST_LISTED = 10
"""Maximum number of documents left out or moved that are printed; the table has all."""

NEAR = Fraction(1, 100)
"""Deviation of a part from its requested documents, as a share of them, up to which the summary gives no reason."""


class SplitAsked(NamedTuple):
    """How a run is to be split."""

    parts: Parts

    seed: int = 1

    by: tuple[str, ...] = ()
    """Columns whose values are to be divided alike."""

    fixed: Mapping[str, str] | None = None
    """The parts of some documents, by id."""

    earlier: Any = None
    """doc_id, part of an earlier split, as the engine sees rows."""

    all_known: bool = False
    """Whether an id of `fixed` that is no document is refused."""


ReadColumns = Callable[[tuple[str, ...]], Any]
"""Returns source, record and `policy`, the values of columns, of all records, as the engine sees rows."""


class ToldSplit(NamedTuple):
    """The counts of a split."""

    counts: dict[str, int]
    """As `split_units.COUNTS`; and `unknown`, the ids of `fixed` that are no document."""

    shares: list[dict[str, Any]]
    """The rows of SHARES of all documents, in the order of the parts."""

    furthest: list[dict[str, Any]]
    """For each column of --by the row of SHARES that is furthest from what is asked."""

    listed: list[dict[str, Any]]
    """The first documents left out, and the first moved."""

    unknown: list[str]
    """The first unknown ids."""


HEADER = "_SPLIT.json"

ROWS = {"split": "SELECT * FROM split ORDER BY doc_id", "shares": "SELECT * FROM shares ORDER BY name, value, part"}
"""The rows of each table as they are written."""

JUDGED = """
    SELECT d.source, d.record, CAST(NULL AS STRING) AS reason, coalesce(p.place = {place}, false) AS nddup_kept,
           CAST(NULL AS STRING) AS nddup_duplicate_of, CAST(NULL AS STRING) AS nddup_cluster,
           CAST(NULL AS BIGINT) AS nddup_copies
    FROM documents AS d JOIN split AS s ON d.doc_id = s.doc_id LEFT JOIN parts AS p ON s.part = p.part
    UNION ALL
    SELECT source, record, reason, CAST(NULL AS BOOLEAN), CAST(NULL AS STRING), CAST(NULL AS STRING),
           CAST(NULL AS BIGINT)
    FROM rejects
"""
"""VERDICTS: of all records, which are in one part."""


class SplitCall(NamedTuple):
    """What the command was given, besides the run: paths as they were written."""

    parts: Parts
    seed: int
    by: tuple[str, ...]
    output: str
    fixed: str | None
    earlier: str | None
    all_known: bool
    is_writing: bool
    """Whether the records are written."""

    def ask(self, files: Files, earlier: EngineTable) -> SplitAsked:
        """Return how the run is to be split, with the list of --fixed read."""
        fixed = None if self.fixed is None else read_fixed(files, self.fixed, self.parts)
        return SplitAsked(self.parts, self.seed, self.by, fixed, earlier, self.all_known)

    def spell_header(self, run: FinishedRun, summary: ToldSplit, written: Mapping[str, int] | None) -> str:
        """Return the header: how the run was split, and the records written by part, None where they were not."""
        noted = {
            "run": str(Path(local_path(run.path)).absolute()) if is_local(run.path) else run.path,
            "parts": {name: str(share) for name, share in zip(*self.parts, strict=True)},
            "seed": self.seed,
            "by": self.by,
            "fixed": self.fixed,
            "from": self.earlier,
            "counts": summary.counts,
            "written": written,
        }
        return json.dumps(noted, indent=1, ensure_ascii=False) + "\n"


def split_run(run: FinishedRun, asked: SplitAsked, read_columns: ReadColumns) -> ToldSplit:
    """Make `split` and `shares`, tables that the run holds until `forget`; return what was counted.

    Raises:
        ConfigError: if --fixed names no document, or one in two parts; or it or --from a part that there is not; or a
            column of --by is nowhere.
        NddupError: if columns must be read and the inputs changed.

    Cost: as `split_units`; one pass over the inputs if columns must be read.
    """
    run.forget()
    config = read_stored(run.metrics.settings, origin=f"{run.path}/metrics.json")
    unknown = see_asked(run, asked, config, read_columns)
    counts = split_units(run, SplitRule(asked.parts, asked.seed, threshold_of(config)))
    return tell(run, asked, counts, unknown)


def see_asked(run: FinishedRun, asked: SplitAsked, config: Config, read_columns: ReadColumns) -> list[str]:
    """Give the run the tables that the stage reads; return the ids of `fixed` that are no document, ascending.

    Errors as of `split_run`.
    """
    given = asked.fixed or {}
    known = find_ids(run, given) if given else {}
    names = sorted(one for one in given if one not in known)
    require_known("--fixed", names[:MOST_LISTED], len(names), len(given), all_known=asked.all_known)
    fixed = require_one("--fixed", given, known)
    run.put("fixed", pa.table({"doc_id": pa.array(fixed, pa.string()), "part": pa.array(fixed.values(), pa.string())}))

    none = pa.table({"doc_id": pa.array([], pa.string()), "part": pa.array([], pa.string())})
    earlier = none if asked.earlier is None else asked.earlier
    (run.put if isinstance(earlier, pa.Table) else run.see)("earlier", earlier)
    before = run.sql("SELECT DISTINCT part FROM earlier WHERE part IS NOT NULL ORDER BY part")["part"].to_pylist()
    for option, parts in (("--fixed", given.values()), ("--from", before)):
        for part in parts:
            if part not in asked.parts.names:
                raise ConfigError(f"{option}: has a part {part}, which --parts does not name; give it a share")

    places = pa.array(range(len(asked.by)), pa.int64())
    run.put("by_columns", pa.table({"place": places, "name": pa.array(asked.by, pa.string())}))
    run.materialise("strata", _list_strata(run, asked.by, config, read_columns))
    return names


def _list_strata(run: FinishedRun, by: Sequence[str], config: Config, read_columns: ReadColumns) -> str:
    text = "SELECT d.doc_id, CAST({place} AS BIGINT) AS place, CAST({value} AS STRING) AS value FROM documents AS d"
    policy = list(config.keep.read)
    asked = ", ".join(f"count({name}) AS {name}" for name in STORED)
    stored = {name for name, n in run.sql(f"SELECT {asked} FROM documents").to_pylist()[0].items() if n}  # noqa: S608
    parts, again = [], []
    for place, name in enumerate(by):
        if name in stored:
            parts.append(text.format(place=place, value=f"d.{name}"))
        elif name in policy:
            parts.append(text.format(place=place, value=f"element_at(d.policy, {policy.index(name) + 1})"))
        else:
            again.append((place, name))
    if again:
        run.see("read_again", read_columns(tuple(name for _, name in again)))
        joined = " LEFT JOIN read_again AS v ON d.source = v.source AND d.record = v.record"
        values = [f"element_at(v.policy, {at})" for at in range(1, len(again) + 1)]
        parts += [
            text.format(place=place, value=value) + joined for (place, _), value in zip(again, values, strict=True)
        ]
    return " UNION ALL ".join(parts) or f"{text.format(place=0, value='NULL')} WHERE false"


def read_fixed(files: Files, path: str, parts: Parts) -> dict[str, str]:
    """Read the file of --fixed: ids and parts, in the forms that `nddup.reading.id_lists` reads.

    Rows without a part, as the table `split` has them of documents left out, are passed by.

    Raises:
        ConfigError: naming the file and the line: if it cannot be read, a part is none of `parts`, or an id has two.
    """
    table = read_list_of(files, path, "--fixed", lambda cells: len(cells) > 1 and cells[1] in parts.names)
    ids = table.id_column or 0
    others = [at for at in range(len(table.names) or 2) if at != ids]
    at = table.names.index("part") if "part" in table.names else next(iter(others), ids)
    fixed: dict[str, str] = {}
    for number, cells in table.rows:
        doc_id, part = (cells[place] if place < len(cells) else "" for place in (ids, at))
        if doc_id.startswith("#") and part not in parts.names:
            continue
        if part not in parts.names and (part or not table.names):
            expected = f"an id and one of {', '.join(parts.names)}"
            raise ConfigError(f"--fixed {path}: line {number}: expected {expected}, got {','.join(cells)[:100]!r}")
        if part and fixed.setdefault(doc_id, part) != part:
            raise ConfigError(f"--fixed {path}: line {number}: {doc_id!r} is in {fixed[doc_id]} and in {part}")
    return fixed


def tell(run: FinishedRun, asked: SplitAsked, counts: dict[str, int], unknown: list[str]) -> ToldSplit:
    """Return what the summary says; `unknown`: ids of `fixed` that are no document."""
    order = {name: place for place, name in enumerate(asked.parts.names)}
    whole = run.sql("SELECT part, documents, asked FROM shares WHERE name IS NULL").to_pylist()
    furthest = run.sql("""
        WITH ordered AS (
            SELECT name, value, part, documents, asked,
                   row_number() OVER (PARTITION BY name ORDER BY abs(documents - asked) DESC, value, part) AS turn
            FROM shares WHERE name IS NOT NULL
        )
        SELECT name, value, part, documents, asked FROM ordered WHERE turn = 1 ORDER BY name
    """).to_pylist()
    listed = run.sql(f"""
        WITH numbered AS (
            SELECT doc_id, part, given, unit, row_number() OVER (PARTITION BY part IS NULL ORDER BY doc_id) AS turn
            FROM split WHERE part IS NULL OR given <> part
        )
        SELECT doc_id, part, given, unit FROM numbered WHERE turn <= {MOST_LISTED} ORDER BY doc_id
    """).to_pylist()  # noqa: S608 - a number
    counts["unknown"] = len(unknown)
    return ToldSplit(counts, sorted(whole, key=lambda row: order[row["part"]]), furthest, listed, unknown[:MOST_LISTED])


def say_split(summary: ToldSplit, run: FinishedRun) -> Iterator[str]:
    """Yield the lines of the summary."""
    counts = summary.counts
    units, largest = counted(counts["units"], "unit"), counts["largest"]
    yield f"documents: {counts['documents']:,} in {units} that are not divided; the largest has {largest:,}"
    placed = max(1, counts["documents"] - counts["left_out"])
    given = f"units are whole, and {counted(counts['given'], 'document')} had a part"
    reason = given if counts["given"] else "a unit goes to one part as a whole"
    for row in summary.shares:
        off, share = row["documents"] - row["asked"], 100 * row["documents"] / placed
        why = "" if abs(off) <= NEAR * row["asked"] else f"; {off:+,.1f}: {reason}"
        yield f"{row['part']}: {counted(row['documents'], 'document')}, {share:.2f} % (asked {row['asked']:,.1f}{why})"
    for row in summary.furthest:
        value = row["value"] or ("no value" if row["value"] is None else "an empty one")
        yield (
            f"by {row['name']}: furthest from its share is {value} in {row['part']}:"
            f" {counted(row['documents'], 'document')}, asked {row['asked']:,.1f}"
        )
    if counts["beyond"]:
        yield f"{counted(counts['beyond'], 'unit')} larger than any part's whole share: in the part that has most"
    for name, what in (
        ("left_out", "left out: their unit is fixed to another part"),
        ("moved", "moved from the earlier split"),
    ):
        if counts[name]:
            ids = [row["doc_id"] for row in summary.listed if (row["part"] is None) == (name == "left_out")]
            yield f"{counted(counts[name], 'document')} {what}: {name_some(ids, counts[name])}"
    if number := counts["unknown"]:
        yield f"{counted(number, 'id')} in --fixed without a document: {name_some(summary.unknown, number)}"
    yield f"found pairs across parts: none; pairs that were not found may be: {_say_missed(run)}"


def _say_missed(run: FinishedRun) -> str:
    """Say how many near-duplicate pairs the run is expected to have missed."""
    settings = run.metrics.settings
    if settings["pairs"]["confirm"] != "resemblance":
        return "sketches estimate; `nddup explain` has the errors"
    return f"{say_missed(settings['sketch']['size'], Fraction(repr(settings['pairs']['threshold'])))} is expected"


def require_room(call: SplitCall, files: Any, folder: RunFolder) -> None:  # noqa: ANN401 - files of either engine
    """Refuse an output that exists, or that lies in or around what is read.

    Raises:
        OutputError: naming it.
    """
    inputs = paths_of(folder) if "inputs" in folder.read_json("_RUN.json") else []
    others = [path for path in (call.earlier,) if path is not None]
    require_new(files, [*inputs, folder.path, *others], call.output)


def find_written(folder: RunFolder, files: Files) -> Again:
    """Find the files of the run, whose records are to be written by part: without those of no known format.

    Raises:
        ConfigError: if a format cannot be written again.
        NddupError: if an input is gone, or changed.
    """
    again = find_inputs_again(folder, files)
    for group in again.collection.groups:
        form = group.head.format
        if not can_rewrite(form.kind):
            raise ConfigError(
                f"{group.files[0].file.source}: files of the format {form.name} cannot be written again;"
                " --no-records writes the tables alone"
            )
    return again._replace(collection=replace(again.collection, unread=(), assets=()))


def split_here(path: str, call: SplitCall) -> tuple[FinishedRun, ToldSplit]:
    """Split a run of this machine, and write the output, which has its name when it is complete.

    Raises:
        ConfigError: as `read_fixed` and `split_run`; if records cannot be written in their format.
        OutputError: if the run is not finished, or the output exists or cannot be written.
        NddupError: if inputs must be read and are gone or changed.
    """
    opened = open_here(path)
    folder, files = opened.folder, LocalStorage()
    require_room(call, files, folder)
    asked = call.ask(files, None if call.earlier is None else _read_earlier(call.earlier))
    again = find_written(folder, files) if call.is_writing else None
    parts = split_run(opened.run, asked, partial(read_columns_here, folder))
    with written_apart(call.output) as apart:
        declared = {name: SPLIT_TABLES[name] for name in ROWS}
        rows = {name: opened.run.sql(text).select(declared[name].names) for name, text in ROWS.items()}
        write_tables(apart, {name: table.cast(declared[name].arrow) for name, table in rows.items()})
        written = None if again is None else _write_records(opened.run, call.parts, again, apart)
        (apart / HEADER).write_text(call.spell_header(opened.run, parts, written), encoding="utf-8")
    return opened.run, parts


def read_columns_here(folder: RunFolder, names: tuple[str, ...]) -> pa.Table:
    """Read columns of --by again, on this machine."""
    files = LocalStorage()
    with Workers(processes_of(config_of(folder))) as workers:
        return read_columns_with(workers, files, find_inputs_again(folder, files), names, asked="--by")


def not_a_split(path: str) -> str:
    """Return the message for a folder of --from without a table of a split."""
    return f"--from {path}: expected a folder that `nddup split` wrote; its table split cannot be read"


def _read_earlier(path: str) -> pa.Table:
    try:
        rows = pq.read_table(Path(local_path(path)) / "split", columns=["doc_id", "part"])
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(not_a_split(path)) from error
    return rows.filter(rows["part"].is_valid())


def _write_records(run: FinishedRun, parts: Parts, again: Again, apart: Path) -> dict[str, int]:
    """Write the records of each part, and return their numbers. Cost: a pass over the inputs for each part."""
    limits, is_first, written = record_limits(again.config), again.config.input.limit is not None, {}
    with Workers(processes_of(again.config)) as workers:
        for place, name in enumerate(parts.names):
            verdicts = in_order(run.sql(JUDGED.format(place=place)))
            rewriter = Rewriter(again.collection, verdicts, is_tagging=False, is_first=is_first, limits=limits)
            written[name] = rewriter.write(apart / name, workers).records
    return written
