"""Confirm recounted pairs of sketches by their texts, for `nddup check`: the texts are read again and compared.

No code of the run's own comparison is used: `tokens.tokenise` makes the tokens by the written rule, `edit_similarity`
counts the longest common subsequence, `definitions` the common shingles. Where that is not possible (the inputs are
gone, or the texts are too long to compare), the run's value is taken, and the line of the promise says what was not
proved. Where the resemblance of all shingles decides, pairs of sketches well below the margin are compared too: those
that reach the threshold were missed, and are counted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import FinishedRun
from nddup.engines.text_places import text_places
from nddup.errors import ConfigError, NddupError
from nddup.matching.confirm_texts import CELLS
from nddup.settings.schema import Config
from nddup.verifying.definitions import Sample, compare_all, gather, list_shingles

MOST_CELLS = 50_000_000_000
"""Most cells, the product of both token counts of a pair, summed over all compared pairs: some minutes of one core."""

MOST_TEXTS = 1_000
"""Texts after which no further document is drawn, to be compared with all its candidates: a second of one core."""

MOST_SHINGLES = 20_000_000
"""Most shingles of the texts that are compared: 160 MB."""

Pair = tuple[str, str]
ReadTexts = Callable[[set[str]], Mapping[str, str]]
"""Reads the texts of documents again, by id. Raises NddupError if the inputs changed."""


class Confirmed(NamedTuple):
    """The pairs that are near-duplicates by their texts too, and a note on what was not proved."""

    pairs: dict[Pair, float]
    """What the threshold applies to, by pair: the resemblance of all shingles, or the edit similarity."""

    note: str
    """Empty if every pair was proved."""

    measure: str
    """`resemblance` or `edit`."""

    changed: str = ""
    """Why the texts are not those of the run; empty if they are, or are gone."""


def confirm_pairs(candidates: set[Pair], claims: Mapping[Pair, float], config: Config, read: ReadTexts) -> Confirmed:
    """Compare the texts of recounted pairs.

    Args:
        candidates: pairs of documents whose sketches are near-duplicates, the smaller id first.
        claims: the value of each pair of the run.
        config: settings of the run.
        read: reads texts again.

    Cost: the tokens of some `MOST_TEXTS` texts are in memory; at most `MOST_CELLS` cells are computed, or
        `MOST_SHINGLES` shingles are made.
    """
    measure = config.pairs.confirm
    claimed = {pair: claims[pair] for pair in candidates & claims.keys()}
    names = choose_texts(candidates)
    pairs = [pair for pair in candidates if names.issuperset(pair)]
    try:
        texts = read(names)
    except NddupError as error:
        changed = "" if measure == "edit" or isinstance(error, ConfigError) else str(error)
        return Confirmed(claimed, f"texts not compared, `{measure}` of the run is taken: {error}", measure, changed)

    comparison: _Edits | _Shingles = _Edits(texts, config) if measure == "edit" else _Shingles(texts, config)
    measured = dict(zip(pairs, comparison.measure(pairs), strict=True))
    found, unproved, share = dict[Pair, float](), 0, comparison.share
    for pair in candidates:
        parts = measured.get(pair)
        if parts is None:
            unproved += 1
            found |= {pair: claimed[pair]} if pair in claimed else {}
        elif parts[0] and parts[0] * share.denominator >= share.numerator * parts[1]:
            found[pair] = parts[0] / parts[1]
    what = f"{unproved:,} of {len(candidates):,} pairs of texts not compared: `{measure}` of the run is taken"
    return Confirmed(found, what if unproved else "", measure)


def choose_texts(candidates: Iterable[Pair]) -> set[str]:
    """Return the texts to compare: documents drawn by the hashes of their ids, each with all its candidates.

    At most MOST_TEXTS and the candidates of one document.
    """
    others: dict[str, list[str]] = {}
    for first, second in candidates:
        others.setdefault(first, []).append(second)
        others.setdefault(second, []).append(first)
    names = set[str]()
    for name in sorted(others, key=lambda name: sha256(name.encode()).digest()):
        if len(names) >= MOST_TEXTS:
            break
        names.update((name, *others[name]))
    return names


class _Edits:
    """The edit similarity of two texts as a fraction; None if they are too long to compare here."""

    def __init__(self, texts: Mapping[str, str], config: Config) -> None:
        from nddup.sketching.tokens import tokenise  # noqa: PLC0415

        self.share = Fraction(repr(config.pairs.edit_threshold))
        self._tokens = {name: tokenise(text) for name, text in texts.items()}
        self._budget = MOST_CELLS

    def measure(self, pairs: Iterable[Pair]) -> Iterable[tuple[int, int] | None]:
        return map(self._measure, pairs)

    def _measure(self, pair: Pair) -> tuple[int, int] | None:
        first, second = (self._tokens.get(name, []) for name in pair)
        cells = len(first) * len(second)
        self._budget -= cells
        if cells > CELLS or self._budget < 0:  # the run took a lower bound, or it would take too long here
            return None
        from nddup.verifying.edit_similarity import count_common  # noqa: PLC0415 - RapidFuzz is not used elsewhere

        return 2 * count_common(first, second), len(first) + len(second)


class _Shingles:
    """The resemblance of all shingles of two texts as a fraction; None if there are too many, or of characters."""

    def __init__(self, texts: Mapping[str, str], config: Config) -> None:
        self.share = config.pairs.share
        self._texts, self._shingle = texts, config.shingle
        self._budget = MOST_SHINGLES if config.shingle.unit == "word" else 0

    def measure(self, pairs: Sequence[Pair]) -> Iterable[tuple[int, int] | None]:
        from nddup.sketching.tokens import tokenise  # noqa: PLC0415

        places, sets = dict[str, int](), list[NDArray[np.uint64]]()
        for name in chain.from_iterable(pairs):
            if name not in places and self._budget > 0:
                places[name] = len(sets)
                sets.append(list_shingles(tokenise(self._texts[name]), self._shingle.length, self._shingle.offset))
                self._budget -= len(sets[-1])
        offsets, ids, _ = gather(sets)
        first, second = np.array([[places.get(name, -1) for name in pair] for pair in pairs], np.int64).reshape(-1, 2).T
        at = np.flatnonzero((first >= 0) & (second >= 0))
        masks, is_made = np.zeros(at.size, np.uint64), np.isin(np.arange(len(pairs)), at)
        found = compare_all(offsets, ids, first[at], offsets, ids, second[at], Sample(1 << 62), masks)
        measured = iter(map(tuple, found[:, 1:3].tolist()))
        return (next(measured) if made else None for made in is_made.tolist())


def ends_of(recounted: pa.Table) -> set[Pair]:
    """Return the pairs of RECOUNTED, the smaller id first."""
    ends = zip(recounted["probe"].to_pylist(), recounted["other"].to_pylist(), strict=True)
    return {(min(pair), max(pair)) for pair in ends}


def claims_of(run: FinishedRun, measure: str) -> dict[Pair, float]:
    """Return `edit`, or `resemblance`, of each pair of nodes in `pairs`, read from `folded`."""
    column = "least_edit" if measure == "edit" else "least"
    text = f"SELECT node_a, node_b, {column} AS claim FROM folded WHERE {column} IS NOT NULL AND node_a IS NOT NULL"  # noqa: S608 - a name
    return {(row["node_a"], row["node_b"]): row["claim"] for row in run.sql(text).to_pylist()}


def read_whole(run: FinishedRun, names: set[str]) -> dict[str, str]:
    """Read the texts of documents by id again from the inputs of a run.

    Raises:
        NddupError: if an input changed or no longer exists.
    """
    from nddup.results.opening import read_texts  # noqa: PLC0415 - only where texts confirm the pairs

    found = read_texts(run.path, text_places(run, names), master=None, is_whole=True)
    return dict(zip(found["doc_id"].to_pylist(), found["text"].to_pylist(), strict=True))


def keep_confirmed(recounted: pa.Table, confirmed: Confirmed) -> pa.Table:
    """Return the confirmed rows of RECOUNTED, with what decided as its own column and as `likeness`, their rank."""
    ends = zip(recounted["probe"].to_pylist(), recounted["other"].to_pylist(), strict=True)
    values = pa.array([confirmed.pairs.get((min(pair), max(pair))) for pair in ends], pa.float64())
    kept = recounted.filter(pc.is_valid(values))
    for name in (confirmed.measure, "likeness"):
        kept = kept.set_column(kept.schema.get_field_index(name), name, values.drop_null())
    return kept
