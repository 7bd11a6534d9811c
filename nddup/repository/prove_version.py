"""`nddup index check`: check a version's files, its digests, and its tables against a fresh run over live documents."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.local import engine
from nddup.local.columns import one_chunk
from nddup.local.reading.workers import Workers
from nddup.repository.live_tables import live_tables
from nddup.repository.places.place import Place
from nddup.repository.snapshot import Snapshot
from nddup.repository.table_totals import COLUMNS, tables_totals


class Proof(NamedTuple):
    """A promise of the repository, whether it holds, and what was compared."""

    promise: str
    holds: bool
    detail: str

    def text(self) -> str:
        """Return the proof as one line."""
        return f"{'ok    ' if self.holds else 'BROKEN'} {self.promise}: {self.detail}\n"


def prove(snapshot: Snapshot, workers: Workers) -> Iterator[Proof]:
    """Check the promises of a version, one after another.

    Cost: reads all segments; pairs and clusters all live documents afresh, in memory.
    """
    yield _prove_files(snapshot)
    tables = live_tables(snapshot)
    stored, said = tables_totals(tables), dict(snapshot.commit.digests)
    yield _compare("what is stored is what was committed", stored, said)
    fresh = _run_fresh(snapshot, tables["documents"], workers)
    if snapshot.identity.mode == "rebuild":
        yield _compare("the tables are those of a fresh run", stored, tables_totals(fresh))
        return
    pairs = {name: (stored[name], tables_totals(fresh)[name]) for name in ("documents", "pairs")}
    yield _compare("the pairs are those of a fresh run", *({k: v[i] for k, v in pairs.items()} for i in (0, 1)))
    yield _prove_frozen(tables)


def _prove_files(snapshot: Snapshot) -> Proof:
    """Prove that every file has the size and the SHA-256 that were committed."""
    wrong, count = [], 0
    for segment in snapshot.commit.segments:
        for name, written in segment.files.items():
            count += 1
            if _measure(snapshot.repo, f"{segment.name}/{name}") != written:
                wrong.append(f"{segment.name}/{name}")
    detail = f"{count} files" if not wrong else f"{', '.join(wrong)} of {count} files differ"
    return Proof("the files are those that were written", not wrong, detail)


def _measure(repo: Place, name: str) -> tuple[int, str] | None:
    try:
        return repo.measure(name)
    except FileNotFoundError:
        return None


def _compare(promise: str, ours: dict[str, tuple[int, str]], theirs: dict[str, tuple[int, str]]) -> Proof:
    differing = [name for name in theirs if ours.get(name) != theirs[name]]
    rows = sum(count for count, _ in ours.values())
    if not differing:
        return Proof(promise, holds=True, detail=f"{rows:,} rows in {len(theirs)} tables")
    said = ", ".join(f"{name} ({ours[name][0]:,} rows, expected {theirs[name][0]:,})" for name in differing)
    return Proof(promise, holds=False, detail=said)


def _run_fresh(snapshot: Snapshot, documents: pa.Table, workers: Workers) -> dict[str, pa.Table]:
    config = snapshot.identity.config
    paired = engine.pair(documents, config, workers)
    clustered = engine.cluster(paired, config, workers)
    kept = engine.keep(paired, clustered, config)
    found = {"documents": documents, "pairs": paired.pairs, "keep": kept.keep}
    return found | {name: getattr(clustered, name) for name in COLUMNS if name not in found}


def _prove_frozen(tables: dict[str, pa.Table]) -> Proof:
    """Prove that no two kept documents are near-duplicates, and each removed one is a near-duplicate of a kept one.

    A star stands for all pairs of two groups. If there are stars, `duplicate_of` need only name a kept document.
    """
    keep, pairs = tables["keep"], tables["pairs"].select(["doc_a", "doc_b", "star"])
    kept = one_chunk(keep.filter(keep["kept"])["doc_id"])
    both = pc.and_(pc.is_in(pairs["doc_a"], value_set=kept), pc.is_in(pairs["doc_b"], value_set=kept))
    removed = keep.filter(pc.invert(keep["kept"]))
    lost = int(np.count_nonzero(~np.asarray(pc.is_in(removed["duplicate_of"], value_set=kept))))
    if not pc.any(pairs["star"]).as_py():
        known = {frozenset(ends) for ends in zip(pairs["doc_a"].to_pylist(), pairs["doc_b"].to_pylist(), strict=True)}
        ends = zip(removed["doc_id"].to_pylist(), removed["duplicate_of"].to_pylist(), strict=True)
        lost += sum(frozenset(pair) not in known for pair in ends)
    double = pc.sum(both).as_py() or 0
    detail = f"{len(kept):,} kept, {len(removed):,} removed; {double} pairs of kept ones, {lost} without a kept one"
    return Proof(
        "every removed document has a kept near-duplicate, and no kept one has", not double and not lost, detail
    )
