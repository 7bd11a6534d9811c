"""Confirm candidates by their texts, which are read again from the input.

documents, candidates --read_candidates--> Confirmer: the token hashes of their texts, in files that are mapped
candidates            --confirm-->         those whose texts are alike enough, with their edit similarity
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.arrays import Ragged
from nddup.errors import NddupError
from nddup.local.columns import one_chunk, pieces_of, take
from nddup.local.pairing.match import Matches
from nddup.local.reading.workers import Workers
from nddup.matching.edit_rule import EditRule
from nddup.matching.token_edits import AHEAD, BLOCK, Edits, compare_tokens, join_edits
from nddup.scanning.collection import Collection
from nddup.scanning.found import Limits
from nddup.scanning.read_again import Tokens
from nddup.scanning.rules import TextRule

TOGETHER = 4 * BLOCK
"""Most tokens of the pairs that one thread compares at a time; a longer pair is compared alone."""


class Texts(NamedTuple):
    """Where texts come from, and how they are read."""

    source: Collection | pa.Table
    rule: TextRule
    limits: Limits


class Confirmed(NamedTuple):
    """The candidates that are pairs, and the counts of the comparison for `metrics.json`."""

    matches: Matches
    counts: Mapping[str, int]


class _Row(NamedTuple):
    """Where the tokens of a document lie."""

    values: NDArray[np.uint64]
    low: int
    high: int


class Confirmer(NamedTuple):
    """The tokens of the nodes in candidates, and when two texts confirm a pair."""

    nodes: NDArray[np.int32]
    """Ascending."""

    rows: Sequence[_Row]
    rule: EditRule

    def any_confirmed(self, names: NDArray[np.int32], one: int, others: NDArray[np.int64]) -> bool:
        """Return whether texts confirm a node as a near-duplicate of any of others, all by their places in `names`."""
        own, rest = np.searchsorted(self.nodes, names[one]), np.searchsorted(self.nodes, names[others])
        for low in range(0, len(rest), AHEAD):
            pairs = np.stack([np.full(len(rest[low : low + AHEAD]), own), rest[low : low + AHEAD]], axis=1)
            if _compare(self.rows, pairs, self.rule).is_near.any():
                return True
        return False

    def confirm(self, matches: Matches, workers: Workers) -> Confirmed:
        """Return the candidates whose texts are alike enough; a thread holds `TOGETHER` tokens at a time."""
        places = np.searchsorted(self.nodes, matches.ends)
        sizes = np.array([row.high - row.low for row in self.rows], np.int64)
        portions = list(pieces_of(sizes[places].sum(axis=1), TOGETHER))
        found = list(workers.work("confirm", lambda some: _compare(self.rows, places[some], self.rule), portions))

        edits = join_edits(found)
        near = np.flatnonzero(edits.is_near)
        names = ("first", "second", "overlap", "resemblance")
        chosen = replace(
            matches,
            **{name: getattr(matches, name)[near] for name in names},
            containments=matches.containments[:, near],
            edit=edits.similarity[near],
        )
        counts = {
            "compared": len(places),
            "confirmed": len(near),
            "bounded": int(np.count_nonzero(edits.is_bounded)),
            "bounded_unconfirmed": int(np.count_nonzero(edits.is_bounded & ~edits.is_near)),
        }
        return Confirmed(chosen, counts)


def read_candidates(matches: Matches, documents: pa.Table, rule: EditRule, texts: Texts, workers: Workers) -> Confirmer:
    """Read the tokens of all nodes in candidates, and of heavy ones whose candidates are still to be made.

    Args:
        matches: the near-duplicate sketches, by the places of their documents, and the links.
        documents: DOCUMENTS.
        rule: when texts confirm a pair.
        texts: the source to read again.
        workers: the processes to read with.

    Raises:
        NddupError: if a text is no longer found because the input changed meanwhile.

    Cost: one pass over the input; each document of a candidate is tokenised once. The tokens stay in mapped files, 8
        bytes each, until the run ends.
    """
    nodes = np.unique(np.concatenate([matches.ends.ravel(), matches.links.ravel()])).astype(np.int32)
    return Confirmer(nodes, _read_tokens(documents, nodes, texts, workers), rule)


def _read_tokens(documents: pa.Table, nodes: NDArray[np.int32], texts: Texts, workers: Workers) -> Sequence[_Row]:
    """Read the tokens of these documents, in their order."""
    if not len(nodes):
        return []
    wanted = take(documents["token_fingerprint"], nodes)
    contents = frozenset(take(documents["content_fingerprint"], nodes).to_pylist())
    source = texts.source
    if isinstance(source, Collection):
        source = source.only(set(pc.unique(take(documents["source"], nodes)).to_pylist()))

    found = workers.scan(source, Tokens(texts.rule, contents), texts.limits)
    at = pc.index_in(one_chunk(wanted), value_set=one_chunk(found["token_fingerprint"]))
    if at.null_count:
        raise NddupError(
            f"pairs.confirm: {len(nodes) - at.null_count} of {len(nodes)} texts were found again: the input changed"
            " meanwhile"
        )
    starts = np.cumsum([0, *(len(chunk) for chunk in found["tokens"].chunks)])
    chunks = [(chunk.values.to_numpy().view(np.uint64), chunk.offsets.to_numpy()) for chunk in found["tokens"].chunks]
    places = at.to_numpy(zero_copy_only=False).astype(np.int64)
    of_chunk = np.searchsorted(starts, places, "right") - 1
    return [
        _Row(chunks[number][0], *chunks[number][1][place : place + 2].tolist())
        for number, place in zip(of_chunk.tolist(), (places - starts[of_chunk]).tolist(), strict=True)
    ]


def _compare(rows: Sequence[_Row], pairs: NDArray[np.int64], rule: EditRule) -> Edits:
    """Compare the texts of some pairs, holding the tokens of these only."""
    needed, places = np.unique(pairs, return_inverse=True)
    held = [rows[place] for place in needed.tolist()]
    offsets = np.concatenate([[0], np.cumsum([row.high - row.low for row in held])]).astype(np.int64)
    values = np.concatenate([row.values[row.low : row.high] for row in held])
    return compare_tokens(Ragged(offsets, values), places.reshape(-1, 2), rule)
