"""The records of a run, read again from its inputs for `nddup check`: what `documents` and `rejects` say of each.

The reader is that of a run: a format has no second one. So this does not prove that records were read well, but that
the tables say what was read: of each record its address, its number of tokens, its fingerprints, or the reason why it
became no document. Of large inputs some files are read, those with the smallest SHA-256 of their names.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from nddup import tables
from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError, NddupError, OutputError, UnreachableError
from nddup.tables import REPEATED, TAKEN_OUT

MOST_BYTES = 64 << 20
"""Maximum number of stored bytes of the files that are read again: some seconds of one core."""

DOCUMENTS = tuple(column.name for column in tables.DOCUMENTS.columns if column.proved_by == "records")
BESIDE = tables.DOCUMENTS.named("came_later")
"""These are compared where the run has any value."""

REJECTS = ("doc_id", "reason", "detail", "excerpt")


class Again(NamedTuple):
    """What the records are, by source and ordinal; the files read, of all; and why nothing was read, or else."""

    documents: pa.Table
    rejects: pa.Table
    read: int
    files: int
    unproved: str = ""
    changed: str = ""


FAR = "the inputs are not on this machine"

NOTHING = Again(pa.table({}), pa.table({}), 0, 0)


def read_again(run: FinishedRun) -> Again:
    """Read the inputs of a run again, as far as they are files of this machine.

    Cost: that of reading and sketching up to `MOST_BYTES` in this process.
    """
    if run.metrics.repository is not None:
        return NOTHING._replace(unproved="a repository does not note its inputs")
    try:
        return _read(run.path)
    except (ConfigError, OutputError, UnreachableError) as error:
        return NOTHING._replace(unproved=str(error))
    except (NddupError, OSError) as error:
        return NOTHING._replace(changed=str(error))


def _read(path: str) -> Again:
    """Read the inputs of the run in a folder.

    Raises:
        ConfigError: if they are gone, or out of reach.
        NddupError: if a file has changed.
    """
    from nddup.embedded.steps import sketch  # noqa: PLC0415 - a check without inputs reads nothing
    from nddup.embedded.workers import Workers  # noqa: PLC0415
    from nddup.results.opening import is_read_here  # noqa: PLC0415
    from nddup.stages.inputs_found import find_again, paths_of  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415
    from nddup.storage.run_folder import RunFolder  # noqa: PLC0415

    folder = RunFolder(LocalStorage(), path)
    if "inputs" not in folder.read_json("_RUN.json"):
        raise ConfigError("the run notes no inputs")
    if not is_read_here(path, *paths_of(folder), master=None):
        raise ConfigError(FAR)
    collection, config = find_again(folder, LocalStorage())
    sizes = {file.source: file.size for file in collection.listing.files}
    chosen, left = set[str](), MOST_BYTES
    for source in sorted(sizes, key=lambda source: sha256(source.encode("utf-8", "surrogatepass")).digest()):
        if sizes[source] <= left:
            chosen.add(source)
            left -= sizes[source]
    if not chosen:
        raise ConfigError(f"each file of the inputs has more than {MOST_BYTES >> 20} MB")
    some = collection if len(chosen) == len(sizes) else collection.only(chosen)
    with Workers(1) as workers:
        found = sketch(some, config, workers, renames=True)
    documents = found.documents.select(["source", "record", *DOCUMENTS])
    return Again(documents, found.rejects.select(["source", "record", *REJECTS]), len(chosen), len(sizes))


def differences(run: FinishedRun, again: Again) -> list[str]:
    """Return what `documents` and `rejects` say otherwise than the records, a line each.

    Whether an id is repeated depends on all records, and is compared only where all were read.
    """
    is_whole = again.read == again.files
    sources = pa.table({"source": pc.unique(pa.chunked_array(
        [*again.documents["source"].chunks, *again.rejects["source"].chunks], pa.string()))})  # fmt: skip
    wrong = list[str]()
    said, due = dict[tuple[str, int], Mapping[str, Any]](), dict[tuple[str, int], Mapping[str, Any]]()
    for name, columns, read in (("documents", DOCUMENTS, again.documents), ("rejects", REJECTS, again.rejects)):
        text = f"SELECT t.source, t.record, {', '.join(f't.{one}' for one in columns)} FROM {name} AS t"  # noqa: S608
        rows = run.sql(f"{text} SEMI JOIN again AS a ON t.source = a.source", again=sources).to_pylist()
        for kept, table in ((said, rows), (due, read.to_pylist())):
            kept |= {(row["source"], row["record"]): {"table": name, **row} for row in table}
    unwritten = {name for name in BESIDE if all(row.get(name) is None for row in said.values())}
    unwritten |= set() if is_whole else {"doc_id", "parent"}  # a repeated id is replaced
    for place in sorted(said.keys() | due.keys()):
        one, other = said.get(place), due.get(place)
        if one == other:
            continue
        if one and other and one.get("reason") == TAKEN_OUT and one["doc_id"] == other["doc_id"]:
            continue  # it is a document that the user took out
        is_repeated = REPEATED in {row.get("reason") for row in (one, other) if row is not None}
        if one is None or other is None or one["table"] != other["table"]:
            if is_whole or not is_repeated:
                wrong.append(f"{place[0]}#{place[1]}: {_named(one)}, read as {_named(other)}")
            continue
        wrong += [
            f"{place[0]}#{place[1]}: {name} is {_spelled(one[name])}, read {_spelled(other[name])}"
            for name in other if name not in unwritten and one[name] != other[name]
        ]  # fmt: skip
    return wrong


def _named(row: Mapping[str, Any] | None) -> str:
    return "no record" if row is None else f"in {row['table']}"


def _spelled(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else "null" if value is None else str(value)
