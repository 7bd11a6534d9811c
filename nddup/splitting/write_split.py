"""What `nddup split` writes: the tables, the records by part in files of the same names, and a header.

split/, shares/    the tables
train/, test/, …   the records of each part, in their own format, byte for byte where that allows
_SPLIT.json        the run and how it was split; `nddup check` reads it
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.embedded.rewrite import Rewriter, in_order
from nddup.embedded.workers import Workers
from nddup.engines.engine import EngineTable, FinishedRun
from nddup.errors import ConfigError, OutputExistsError
from nddup.results.opening import open_here
from nddup.rewriting.rewrite_file import can_rewrite
from nddup.scanning.collection import Files
from nddup.settings.plan import processes_of, record_limits
from nddup.splitting.make_split import (
    SplitAsked,
    ToldSplit,
    find_inputs_again,
    read_columns_with,
    read_fixed,
    split_run,
)
from nddup.splitting.parts import Parts
from nddup.stages.inputs_found import Again, config_of, paths_of
from nddup.storage.local_storage import LocalStorage, is_local, local_path, require_apart, written_apart
from nddup.storage.run_folder import RunFolder
from nddup.tables.features import SPLIT_TABLES

HEADER = "_SPLIT.json"

ROWS = {
    "split": "SELECT * FROM split ORDER BY doc_id",
    "shares": "SELECT * FROM shares ORDER BY name, value, part",
}
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

    def spell_header(self, run: FinishedRun, told: ToldSplit, written: Mapping[str, int] | None) -> str:
        """Return the header: how the run was split, and the records written by part, None where they were not."""
        noted = {
            "run": str(Path(local_path(run.path)).absolute()) if is_local(run.path) else run.path,
            "parts": {name: str(share) for name, share in zip(*self.parts, strict=True)},
            "seed": self.seed,
            "by": self.by,
            "fixed": self.fixed,
            "from": self.earlier,
            "counts": told.counts,
            "written": written,
        }
        return json.dumps(noted, indent=1, ensure_ascii=False) + "\n"


def require_room(call: SplitCall, files: Any, folder: RunFolder) -> None:  # noqa: ANN401 - files of either engine
    """Refuse an output that exists, or that lies in or around what is read.

    Raises:
        OutputError: naming it.
    """
    if files.exists(call.output):
        raise OutputExistsError(f"--output {call.output}: exists already; give another folder")
    inputs = paths_of(folder) if "inputs" in folder.read_json("_RUN.json") else []
    others = [path for path in (call.earlier,) if path is not None]
    require_apart(files, [*inputs, folder.path, *others], call.output)


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
        for name, text in ROWS.items():
            (apart / name).mkdir(parents=True)
            rows = opened.run.sql(text).select(SPLIT_TABLES[name].names).cast(SPLIT_TABLES[name].arrow)
            pq.write_table(rows, apart / name / "part-00000.zstd.parquet", compression="zstd")
        written = None if again is None else _write_records(opened.run, call.parts, again, apart)
        (apart / HEADER).write_text(call.spell_header(opened.run, parts, written), encoding="utf-8")
    return opened.run, parts


def read_columns_here(folder: RunFolder, names: tuple[str, ...]) -> pa.Table:
    """As `read_columns_with`, on this machine."""
    with Workers(processes_of(config_of(folder))) as workers:
        return read_columns_with(workers, folder, LocalStorage(), names)


def not_a_split(path: str) -> str:
    """Return the message for a folder of --from without a table of a split."""
    return f"--from {path}: expected a folder that `nddup split` wrote; its table split cannot be read"


def _read_earlier(path: str) -> pa.Table:
    """Read the documents of an earlier split and their parts."""
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
