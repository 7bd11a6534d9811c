"""Change single values in the files of a repository, with right digests, and see what each command makes of it.

    python -m scripts.try_foreign_repository [--changes N] [--seconds N] [--seed N] [--kind KIND] [--only FILE]

Each change gives a copy of a repository whose commit and `digests.json` say the digests of the changed file: as its
author, who means harm, can write it. Child processes query it, check it and add to it. None may end by a signal, with a
raw error, or with another answer than the untouched repository gives while `check` finds nothing.

What a repository stores of its own account (`FREE`: addresses, sources, texts) is no lie: another value is another
repository, and its answers show it.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nddup
from nddup.errors import NddupError
from nddup.ground.array_files import crc_of, map_array, write_array
from nddup.repository.close_components import tables_totals
from nddup.repository.places import digest_file
from nddup.storage.run_folder import digest

FREE = frozenset(
    ["url", "source", "record", "n_tokens", "version", "text", "content_fingerprint", "signature", "parent",
     "unread_bytes", "unread_parts"]
)  # fmt: skip
"""Columns of which nothing else in a repository says what they must hold."""

KINDS: dict[str, dict[str, Any]] = {
    "mod": {
        "sketch": {"kind": "mod-pow2", "size": 30},
        "shingle": {"length": 2},
        "pairs": {"threshold": 0.6},
        "clusters": {"mode": "partition"},
    },
    "estimated": {"sketch": {"size": 30}, "shingle": {"length": 2}, "pairs": {"threshold": 0.6, "confirm": "none"}},
    "exact": {"sketch": {"size": 10}, "shingle": {"length": 2}, "pairs": {"threshold": 0.6}},
}
"""Settings of the repositories that are changed."""

NUMBERS = (-1, 0, 1, 2, 3, 7, -(2**31), 2**31 - 1, 2**28, -(2**28), 2**40, 2**62, -(2**63), 2**63 - 1, 1 << 20)


GOOD = ("same", "made again", "refused", "found by check", "free")
"""What may come of a change."""


LACKS, BYTES, SHUFFLES, DROPS = 0.15, 0.5, 0.1, 0.05
"""Shares of changes to null, to the bytes of an Arrow file, to the order of the rows, and to their number."""


class Outcome(NamedTuple):
    """A change, and what came of it: one of `GOOD`, or what is wrong."""

    file: str
    change: str
    result: str


def texts() -> dict[str, str]:
    """Return some families of texts, and texts alone."""
    chance = random.Random(3)  # noqa: S311 - no secret
    made = {}
    for family in range(6):
        words = [f"f{family}w{number}" for number in range(60)]
        for member in range(4):
            changed = [f"x{chance.randrange(99)}" if chance.random() < member / 60 else word for word in words]
            made[f"d{family}{member}"] = " ".join(changed)
    return made | {f"alone{number}": " ".join(f"a{number}w{word}" for word in range(40)) for number in range(5)}


def make_repository(folder: Path, kind: str) -> None:
    """Make a repository of two segments with a removed document; its segments are mapped."""
    repo = nddup.repository.create(str(folder), local={"processes": 1}, **KINDS[kind])
    given = texts()
    repo.add(given)
    repo.add({"late": given["d00"] + " late", "d99": "a text of its own that nothing else is like, with words"})
    repo.remove("alone0")
    repo.query(given)


def ask_query(folder: Path) -> object:
    """Return what a query of all texts and of new ones says."""
    rows = nddup.repository.open(str(folder), local={"processes": 1}).query(_asked()).to_pylist()
    return [{name: value for name, value in row.items() if name != "repository"} for row in rows]


def _asked() -> dict[str, str]:
    return {**texts(), "new": texts()["d10"] + " new words", "other": "nothing like it is there, none at all"}


def ask_tables(folder: Path) -> object:
    """Return the digests of all tables."""
    return tables_totals(nddup.repository.open(str(folder), local={"processes": 1}).tables())


def ask_add(folder: Path) -> object:
    """Return what adding and removing documents changes."""
    repo = nddup.repository.open(str(folder), local={"processes": 1})
    written = repo.add({"new": texts()["d10"] + " new words", "copy": texts()["d20"], "fresh": "none is like this one"})
    removed, unknown = repo.remove("d30")
    return written.changes.to_pylist(), removed.changes.to_pylist(), unknown, tables_totals(repo.tables())


def is_proved(folder: Path) -> bool:
    """Return whether `index check` finds nothing."""
    return all(proof.holds for proof in nddup.repository.open(str(folder), local={"processes": 1}).check())


ADDS = 8
"""One change of so many is tried with adding, too."""

ASKED: Mapping[str, Callable[[Path], object]] = {"query": ask_query, "tables": ask_tables, "add": ask_add}


def copy_links(folder: Path, copy: Path) -> Path:
    """Make another folder of the same files: each is removed before it is changed, so links are enough."""
    shutil.rmtree(copy, ignore_errors=True)
    return Path(shutil.copytree(folder, copy, copy_function=os.link))


def judge(folder: Path, changed: Path, due: Mapping[str, object], asked: Sequence[str] = tuple(ASKED)) -> str:
    """Return what some of `ASKED` make of a repository in which a file was changed; each works on its own copy."""
    before = changed.read_bytes()
    opened = _said(partial(_open, folder))
    if opened != "same":
        return opened
    if changed.read_bytes() != before:
        return "made again"
    said = set()
    for name in asked:
        copy = copy_links(folder, folder.with_name(name))
        said.add(_said(lambda: "same" if ASKED[name](copy) == due[name] else f"{name} differs"))  # noqa: B023
    if wrong := sorted(one for one in said if "raw" in one or "lines" in one):
        return "; ".join(wrong)
    differing = sorted(one for one in said if "differs" in one)
    if not differing:
        return "refused" if "refused" in said else "same"
    proved = _said(lambda: f"SILENT {'; '.join(differing)}" if is_proved(folder) else "found by check")
    return "found by check" if proved == "refused" else proved


def _open(folder: Path) -> str:
    list(nddup.repository.open(str(folder), local={"processes": 1}).snapshot.mapped)
    return "same"


def _said(action: Callable[[], str]) -> str:
    """Return what an action says, `refused` if it ends with one line, or how it ends otherwise."""
    try:
        return action()
    except NddupError as error:
        return "refused" if "\n" not in str(error) else f"several lines: {error}"
    except Exception as error:  # noqa: BLE001 - what a command would show raw
        return f"raw {type(error).__name__}: {error}"


def in_child(action: Callable[[], str]) -> str:
    """Return what an action says in a forked child, or the signal that ended it."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            os.write(theirs, action().encode()[:4000])
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        said = file.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"SIGNAL {-status}" if status < 0 else said or "ended without a word"


def change_file(path: Path, chance: random.Random) -> str:
    """Change one value of a Parquet, Arrow or array file; return in words what was changed."""
    if path.suffix == ".array":
        array = map_array(path).copy()
        said = _change_numbers(array, chance)
        path.unlink()
        write_array(path, array)
        return said
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path.read_bytes()).read_all()
    name = chance.choice(table.column_names)
    if path.suffix == ".arrow" and chance.random() < BYTES:
        return change_buffer(path, chance)
    changed, said = _change_column(table[name].combine_chunks(), chance)
    table = table.set_column(table.schema.get_field_index(name), pa.field(name, changed.type), changed)
    if chance.random() < SHUFFLES and len(table) > 1:
        order = chance.sample(range(len(table)), len(table))
        table, said = table.take(pa.array(order)), "rows shuffled"
    elif chance.random() < DROPS:
        table, said = table.slice(1), "a row less"
    path.unlink()
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return f"{name}: {said}"


def change_buffer(path: Path, chance: random.Random) -> str:
    """Change four or eight bytes of an Arrow file: offsets, values, lengths of buffers."""
    whole = bytearray(path.read_bytes())
    size = chance.choice((4, 8))
    at = chance.randrange(0, max(len(whole) - 16, 1)) // size * size
    value = chance.choice(NUMBERS) % (1 << 8 * size)
    whole[at : at + size] = value.to_bytes(size, "little")
    path.unlink()
    path.write_bytes(whole)
    return f"bytes at {at} of {len(whole)}: {value}"


def _change_numbers(array: np.ndarray[Any, Any], chance: random.Random) -> str:
    if not len(array):
        return "nothing"
    at, info = chance.randrange(len(array)), np.iinfo(array.dtype)
    span = int(info.max) - int(info.min) + 1
    value = chance.choice((*NUMBERS, int(array[at]) + 1, int(array[at]) - 1, int(array[chance.randrange(len(array))])))
    array[at] = (value - int(info.min)) % span + int(info.min)
    return f"[{at}] of {len(array)}: {value}"


def _change_column(column: pa.Array, chance: random.Random) -> tuple[pa.Array, str]:
    values = column.to_pylist()
    if not values:
        return column, "nothing"
    at = chance.randrange(len(values))
    before = values[at]
    after: Any = None
    if chance.random() > LACKS:
        after = _other(before, values, column.type, chance)
    values[at] = after
    try:
        return pa.array(values, column.type), f"[{at}]: {before!r:.60} -> {after!r:.60}"
    except (pa.ArrowException, OverflowError, TypeError):
        return column, "nothing"


def _other(value: Any, values: list[Any], kind: pa.DataType, chance: random.Random) -> Any:  # noqa: ANN401
    if pa.types.is_integer(kind):
        return chance.choice((*NUMBERS, (value or 0) + 1, (value or 0) - 1, chance.choice(values)))
    if pa.types.is_floating(kind):
        return chance.choice((float("nan"), float("inf"), -1.0, 0.0, 1e300, 0.5))
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_list(kind):
        items = list(value or [])
        return chance.choice(([], items[::-1], items[:-1], [*items, *items], [*items, None], [*items[:-1], 1 << 40]))
    if pa.types.is_binary(kind):
        return chance.choice((b"", b"x" * 15, b"x" * 16, b"x" * 17, chance.choice(values)))
    return chance.choice(("", "x" * 99, "d00", "a\nb", "\x1b[2J", chance.choice(values)))


def renew_digests(repo: Path) -> None:
    """Write the digests that the files have now into the newest commit and into the mapped folders."""
    newest = max((repo / "commits").glob("*.json"), key=lambda file: int(file.stem))
    value = json.loads(newest.read_bytes())
    value.pop("digest", None)
    for segment in value["segments"]:
        folder = repo / "segments" / segment["name"]
        for name in segment["files"]:
            file = folder / name
            segment["files"][name] = [file.stat().st_size, digest_file(file)]
            if file.suffix == ".parquet":
                segment["rows"][file.stem] = pq.read_metadata(file).num_rows
        for mapped in folder.glob("mapped-*"):
            noted = {one.name: [one.stat().st_size, crc_of(one)] for one in mapped.iterdir() if one.suffix != ".json"}
            (mapped / "digests.json").unlink()
            (mapped / "digests.json").write_text(json.dumps(noted))
    newest.unlink()
    newest.write_text(json.dumps({**value, "digest": digest(value)}))


def try_changes(place: Path, kind: str, changes: int, *, seed: int = 1, only: str = "") -> Iterator[Outcome]:
    """Change each kind of file so many times, one change at a time, the kinds of files in turn.

    One in `ADDS` changes is also added to, which costs as much as ten questions.
    """
    whole, folder = place / f"whole-{kind}", place / "foreign"
    make_repository(whole, kind)
    due = {name: ask(copy_links(whole, place / "due")) for name, ask in ASKED.items()}
    assert is_proved(whole)  # noqa: S101
    of_kind = files_by_kind(whole)
    chance = random.Random(seed)  # noqa: S311
    for number in range(changes):
        for name in (one for one in of_kind if re.search(only, one)):
            copy_links(whole, folder)
            changed = folder / chance.choice(of_kind[name])
            said = change_file(changed, chance)
            if name.startswith("tables"):
                for mapped in folder.rglob("mapped-*"):
                    shutil.rmtree(mapped)
            renew_digests(folder)
            asked = tuple(ASKED) if number % ADDS == 0 else ("query", "tables")
            result = in_child(partial(judge, folder, changed, due, asked))
            is_free = said.partition(":")[0] in FREE and "SIGNAL" not in result and "raw" not in result
            yield Outcome(f"{kind} {name}", said, "free" if is_free and "SILENT" in result else result)


def files_by_kind(repo: Path) -> dict[str, list[Path]]:
    """Return the paths within a repository of the files of each kind in the segments of its newest version."""
    newest = max((repo / "commits").glob("*.json"), key=lambda file: int(file.stem))
    found = dict[str, list[Path]]()
    for one in json.loads(newest.read_bytes())["segments"]:
        for file in sorted((repo / "segments" / one["name"]).rglob("*")):
            if file.suffix in (".parquet", ".arrow", ".array"):
                folder = "mapped" if "mapped" in file.parent.name else "tables"
                found.setdefault(f"{folder}/{file.name}", []).append(file.relative_to(repo))
    return dict(sorted(found.items()))


def main() -> None:
    """Print what came of the changes to each file, and each that is wrong; exit with 1 if one is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=10, metavar="N", help="of each kind of file")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="N", help="for each repository, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, help="only this repository")
    parser.add_argument("--only", default="", help="only files that this pattern finds")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="nddup-foreign-") as place:
        for kind in [options.kind] if options.kind else KINDS:
            end = time.monotonic() + options.seconds
            for outcome in try_changes(Path(place), kind, options.changes, seed=options.seed, only=options.only):
                is_good = outcome.result in GOOD
                counts.setdefault(outcome.file, Counter())[outcome.result if is_good else "WRONG"] += 1
                if not is_good:
                    wrong += 1
                    sys.stdout.write(f"{outcome.file}: {outcome.change}: {outcome.result}\n")
                    sys.stdout.flush()
                if time.monotonic() > end:
                    break
    for file, found in counts.items():
        sys.stdout.write(f"{file:<40} {dict(found)}\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
