"""Find the passages of a collection, or of the kept documents of a run, and make their tables.

The records are read once. Their texts and token hashes lie in files that the workers wrote and are mapped from disk;
the hashes, 8 bytes a token, are copied into memory, and `nddup.passages.repeats` says what the search needs besides.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.against_inputs import reasons
from nddup.against.compare_collections import report_to
from nddup.embedded.collapse import name_apart, number_in_file, order_documents, rank_ids
from nddup.embedded.memory import Memory
from nddup.embedded.read_records import list_silent
from nddup.embedded.workers import Workers, in_collection_order
from nddup.engines.choose import memory_of
from nddup.engines.duck import DuckEngine, DuckRun
from nddup.engines.engine import EngineTable
from nddup.errors import ConfigError
from nddup.ground.json_text import load_object
from nddup.ground.progress import Steps
from nddup.matching.preference import DATED, Order
from nddup.passages.repeats import Repeats, find_repeats
from nddup.passages.tabulate import Documents, HashRecords, hashes_of, make_tables
from nddup.scanning.collection import Collection, Files
from nddup.settings.plan import processes_of, record_limits, text_rule
from nddup.settings.schema import Config, InputConfig
from nddup.stages.inputs_found import find_again, find_inputs
from nddup.stages.losses import require_few_losses, require_readable
from nddup.storage.local_storage import LocalStorage, is_local, local_path
from nddup.storage.run_folder import RunFolder
from nddup.tables import REJECTS

STEPS = 4
"""Number of steps of `find_passages`, for progress."""

ADVICE = "give fewer inputs at a time, or --engine spark"
"""Advice in the error if the hashes of the tokens do not fit in memory."""

OF_TOKEN = 100
"""Bytes of memory for each token, as measured with the texts and tables of a run: some 98."""

WEIGHT = 3.0
"""How many times the memory of a run over the same files is needed: some 100 bytes a token, of six bytes of text."""


class Source(NamedTuple):
    """The records to be read: their files, the settings, and of a run its kept documents.

    Attributes:
        config: settings for reading them, and of passages.
        kept: `doc_id`, `source`, `record` of the documents that a run kept, as a table of the engine; None where all
            records count.
    """

    collection: Collection
    config: Config
    kept: Any


class FoundPassages(NamedTuple):
    """What was found: the documents, the repeats, and the tables by name."""

    documents: Documents
    repeats: Repeats
    tables: dict[str, pa.Table]


ORDER = ("policy", "prefer")
"""The keys of `keep` that passages heeds."""

READING = [("tokens", "ignore"), *(("input", key) for key in InputConfig.model_fields if not key.startswith("max_"))]
"""The settings that decide which texts are read, and what their tokens are."""


def is_run(inputs: Sequence[str]) -> bool:
    """Return whether the one INPUT is the folder of a finished run."""
    return len(inputs) == 1 and is_local(inputs[0]) and Path(local_path(inputs[0]), "_RUN.json").is_file()


def paths_read(inputs: Sequence[str]) -> list[str]:
    """Return the files and folders that are read: INPUT, or the inputs of a run."""
    if not is_run(inputs):
        return list(inputs)
    try:
        noted: dict[str, Any] = load_object(Path(local_path(inputs[0]), "_RUN.json").read_text(encoding="utf-8"))
        return list(noted["inputs"]["paths"])
    except (OSError, ValueError, KeyError, TypeError):
        return list(inputs)  # whoever opens it says what is wrong


def find_source(inputs: Sequence[str], config: Config) -> Source:
    """Find the files to read: those of INPUT, or of a run with the settings by which it read them.

    Raises:
        ConfigError: if an input is missing or nothing in it can be read.
        NddupError: if the inputs of a run changed, or more files than allowed cannot be opened.
        OutputError: if the run is not finished.
    """
    files = LocalStorage()
    if not is_run(inputs):
        return find_collection(inputs, config, files)
    kept = DuckRun(inputs[0]).sql(
        "SELECT d.doc_id, d.source, d.record FROM documents d JOIN keep k ON d.doc_id = k.doc_id WHERE k.kept"
    )
    return find_kept(RunFolder(files, inputs[0]), kept, config, files)


def find_collection(inputs: Sequence[str], config: Config, files: Files) -> Source:
    """Find the files of INPUT; errors as of `find_source`."""
    collection = find_inputs(files, list(inputs), config)
    require_readable(collection.unread, config.input.max_unreadable)
    return Source(collection, config, None)


def find_kept(folder: RunFolder, kept: EngineTable, config: Config, files: Files) -> Source:
    """Find the files of a finished run again, of which only the documents in `kept` count; errors as of `find_source`.

    Args:
        kept: `doc_id`, `source`, `record`.
        config: the settings of passages, output and engine, and the order of documents if it gives one; those for
            reading are the run's.

    Raises:
        ConfigError: also if `config` reads in another way than the run, whose order may also be no word.
    """
    again = find_again(folder, files)
    for section, key in READING:
        value, run_value = (getattr(getattr(one, section), key) for one in (config, again.config))
        if key in getattr(config, section).model_fields_set and value != run_value:
            raise ConfigError(f"{section}.{key}: {folder.path} is read as the run read it; give its INPUT instead")
    order = {name: getattr(config.keep, name) for name in ORDER if name in config.keep.model_fields_set}
    sections = {name: getattr(config, name) for name in ("passages", "output", "local", "spark")}
    sections["keep"] = again.config.keep.model_copy(update=order)
    require_word(sections["keep"].order)
    return Source(again.collection, again.config.model_copy(update=sections), kept)


def find_passages(source: Source, steps: Steps) -> FoundPassages:
    """Find the passages, and make the tables.

    Raises:
        ConfigError: if no document can be read, or for columns in `keep.policy`.
        NddupError: if more records than `input.max_rejects` cannot be read.
        NeedsSparkError: if the tokens do not fit in `local.memory`.

    Cost: one pass over the files, then linear in tokens.
    """
    settings = source.config.passages
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as spool:
        steps.begin("read the documents")
        documents = read_documents(source, steps, Path(spool))
        steps.begin("find what is repeated")
        ranks = rank_documents(documents, source.config.keep.order)
        repeats = find_repeats(documents.hashes, ranks, settings.min_tokens, within=settings.within)
        steps.begin("make the tables")
        tables = make_tables(documents, repeats, settings.min_left)
    return FoundPassages(documents, repeats, tables)


def read_documents(source: Source, steps: Steps, spool: Path) -> Documents:
    """Read the records; errors as of `find_passages`."""
    config = source.config
    memory = Memory(memory_of(config), advice=ADVICE)
    with Workers(processes_of(config), spool=spool / "rows", progress=report_to(steps), memory=memory) as workers:
        consumer = HashRecords(text_rule(config), config.tokens.ignored)
        read = workers.scan(source.collection, consumer, record_limits(config))
    rows = in_collection_order(read, source.collection)
    records = pa.array(number_in_file(rows["source"]))
    rows = rows.append_column("record", records).append_column("doc_key", pa.array(np.arange(len(rows))))
    is_good = pc.is_null(rows["reason"])
    bad = rows.filter(pc.invert(is_good)).select(REJECTS.names).cast(REJECTS.arrow)
    rejects = pa.concat_tables([bad, list_silent(source.collection, rows)])
    good = read = rows.filter(is_good) if len(bad) else rows  # a filter copies texts and hashes
    if source.kept is not None:
        good = _only_kept(good, source.kept)
    elif config.input.limit is not None:
        good = good.slice(0, config.input.limit)
    if not len(good):
        row = next(iter(rejects.slice(0, 1).to_pylist()), None)
        why = f": {row['source']}: {row['reason']} ({row['detail']})" if row else ""
        raise ConfigError(f"no document can be read{why}")
    if source.kept is None:
        seen = {"documents": good.select(["source"]), "rejects": rejects}
        ask = partial(DuckEngine.over, "these records", **seen)
        require_few_losses(ask, len(good), reasons(rejects), config.input, source.collection)
        good = good.set_column(good.column_names.index("doc_id"), "doc_id", name_apart(good.drop_columns(["doc_key"])))
    tokens = pc.sum(pc.list_value_length(good["hashes"])).as_py() or 0
    memory.require(OF_TOKEN * tokens, f"the {tokens:,} tokens")
    places = ["source", "record"]
    others = (
        read.select(places).join(good.select(places), places, join_type="left anti") if len(read) > len(good) else None
    )
    named = good.select(["doc_key", "doc_id", *places, "url", "text"])
    whole = config.passages.whole_sentences
    documents = Documents(named, hashes_of(good), rejects, ignore=config.tokens.ignored, whole_sentences=whole)
    return documents if others is None else replace(documents, others=others)


def _only_kept(rows: pa.Table, kept: pa.Table) -> pa.Table:
    """Return the rows of the kept documents, with the ids of the run."""
    ids = {
        place: doc_id
        for doc_id, *place_of in zip(*(kept[name].to_pylist() for name in ("doc_id", "source", "record")), strict=True)
        for place in [tuple(place_of)]
    }
    places = zip(rows["source"].to_pylist(), rows["record"].to_pylist(), strict=True)
    kept_ids = pa.array([ids.get(place) for place in places], pa.string())
    rows = rows.set_column(rows.column_names.index("doc_id"), "doc_id", kept_ids)
    return rows.filter(pc.is_valid(kept_ids))


def require_word(order: Order) -> None:
    """Refuse columns and dates in `keep.policy`. ConfigError: if there are any."""
    if order.columns or order.policy in DATED:
        raise ConfigError("keep.policy: passages takes longest, first, first-id or shortest-url (--set keep.policy=…)")


def rank_documents(documents: Documents, order: Order) -> NDArray[np.int64]:
    """Return the place of each document in the order of `keep.prefer`, `keep.policy` and the id, (n,).

    Raises:
        ConfigError: for columns in `keep.policy`.
    """
    require_word(order)
    rows = documents.rows.append_column("n_tokens", pa.array(np.diff(documents.hashes.offsets)))
    for name in ("date", "record_type"):  # of archives; passages reads texts alone
        rows = rows.append_column(name, pa.nulls(len(rows), pa.string()))
    ranks = np.empty(len(rows), np.int64)
    ranks[order_documents(rows, order, rank_ids(rows["doc_id"]))] = np.arange(len(rows))
    return ranks
