"""Decide candidates by all shingles of both texts: those of stored nodes, and those of new texts, read again.

    candidates --count_common--> the shingles that both texts of each have, 0 where too few

New texts have numbers from `next_key` of the commit on, which no stored node has.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.columns import ragged_of
from nddup.local.pairing.confirm import Confirmer, Row, Texts, read_tokens
from nddup.local.reading.workers import Workers
from nddup.matching.confirm_rules import SetRule, least_common
from nddup.repository.identity import Identity
from nddup.repository.lookup.keyed import distinct
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.settings.plan import record_limits, tokens_of

Read = Callable[[NDArray[np.int64]], Sequence[Row]]
"""Reads the shingle ids of some texts, given by their places."""


class NewTexts(NamedTuple):
    """The n texts of a batch, or queries."""

    names: NDArray[np.int64]
    """(n,), their numbers, ascending."""

    n_features: NDArray[np.int32]
    """(n,), the number of distinct shingles of each."""

    read: Read


def texts_of(identity: Identity, source: Collection | pa.Table) -> Texts:
    """Return how the shingle ids of texts are read from their source."""
    config = identity.config
    rule = SetRule(config.pairs.share.numerator, config.pairs.share.denominator)
    return Texts(source, tokens_of(config), record_limits(config), rule, identity.is_front, config.pairs.max_edges)


def read_shingles(
    identity: Identity, documents: pa.Table, source: Collection | pa.Table, workers: Workers
) -> Sequence[Row]:
    """Return where the shingle ids of some DOCUMENTS lie: in sketches that hold all, else read from the source again.

    Raises:
        NddupError: if a text is no longer found, because the input changed meanwhile.

    Cost: a pass over the source, unless all sketches are whole; 8 bytes a shingle, in mapped files where it is large.
    """
    sketches, sizes = ragged_of(documents["sketch"]), documents["n_features"].to_numpy()
    ends = sketches.offsets
    is_whole = (np.diff(ends) == sizes) & identity.is_front
    again = np.flatnonzero(~is_whole).astype(np.int32)
    read = iter(read_tokens(documents, again, texts_of(identity, source), workers))
    return [
        Row(sketches.values, int(ends[i]), int(ends[i + 1])) if whole else next(read)
        for i, whole in enumerate(is_whole.tolist())
    ]


class Counted(NamedTuple):
    """The shingles of both texts of k candidates."""

    common: NDArray[np.int64]  # (k,), 0 where they are too few for the rule
    sizes: NDArray[np.int64]  # (k, 2)

    @property
    def united(self) -> NDArray[np.int64]:
        """The shingles of both texts together, (k,)."""
        return np.asarray(self.sizes.sum(axis=1) - self.common)


def count_common(
    snapshot: Snapshot, ends: NDArray[np.int64], given: NewTexts, rule: SetRule, workers: Workers
) -> Counted:
    """Count the shingles common to both texts of each candidate.

    Args:
        snapshot: the version that holds the stored nodes.
        ends: (k, 2), stored nodes, or names of new texts.
        given: the new texts.
        rule: the least resemblance.
        workers: the threads to compare with.

    Cost: the texts of candidates whose sizes allow the resemblance are read, and merged pair by pair; a thread holds a
        portion of them in memory.
    """
    names = distinct(ends.ravel())
    is_new = names >= snapshot.commit.next_key
    at = np.searchsorted(given.names, names[is_new])
    sizes = np.empty(len(names), np.int64)
    sizes[~is_new], sizes[is_new] = snapshot.n_features_of(names[~is_new]), given.n_features[at]

    places = np.searchsorted(names, ends)
    of_ends = sizes[places]
    possible = np.flatnonzero(of_ends.min(axis=1) >= least_common(of_ends.sum(axis=1), rule))
    needed = distinct(places[possible].ravel())
    stored, new = needed[~is_new[needed]], needed[is_new[needed]]  # the names of new texts come after all stored ones
    rows = [*snapshot.shingles_of(names[stored]), *given.read(np.searchsorted(given.names, names[new]))]
    common = np.zeros(len(ends), np.int64)
    if len(possible):
        found = Confirmer(needed.astype(np.int32), rows, rule).compare(places[possible], workers)
        common[possible] = found.common
    return Counted(common, of_ends)
