"""Confirm recounted pairs of sketches by their texts, for `nddup check`: the texts are read again and compared.

No code of the run's own comparison is used: `tokens.tokenise` makes the tokens by the written rule, and `token_lcs`
counts the longest common subsequence. Where that is not possible (the inputs changed, or the texts are too long to
compare), the run's value is taken, and the line of the promise says what was not proved.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from nddup.errors import NddupError
from nddup.matching.edit_rule import CELLS
from nddup.opened.finished_run import FinishedRun
from nddup.results.texts_again import read_texts
from nddup.sketching.tokens import tokenise
from nddup.verifying.token_lcs import count_common

MOST_CELLS = 50_000_000_000
"""Most cells, the product of both token counts of a pair, summed over all compared pairs: some minutes of one core."""

Pair = tuple[str, str]
ReadTexts = Callable[[set[str]], Mapping[str, str]]
"""Reads the texts of documents again, by id. Raises NddupError if the inputs changed."""


class Confirmed(NamedTuple):
    """The pairs that are near-duplicates by their texts too, and a note on what was not proved."""

    pairs: dict[Pair, float]
    """Edit similarity by pair."""

    note: str
    """Empty if every pair was proved."""


def confirm_pairs(candidates: set[Pair], claims: Mapping[Pair, float], threshold: float, read: ReadTexts) -> Confirmed:
    """Compare the texts of recounted pairs.

    Args:
        candidates: pairs of documents whose sketches are near-duplicates, the smaller id first.
        claims: `edit` of each pair of the run.
        threshold: `pairs.edit_threshold`.
        read: reads texts again.

    Cost: the tokens of all candidates are in memory; at most `MOST_CELLS` cells are computed.
    """
    claimed = {pair: claims[pair] for pair in candidates & claims.keys()}
    try:
        texts = read({name for pair in candidates for name in pair})
    except NddupError as error:
        return Confirmed(claimed, f"texts not compared, `edit` of the run is taken: {error}")
    tokens = {name: tokenise(text) for name, text in texts.items()}

    share = Fraction(repr(threshold))
    found: dict[Pair, float] = {}
    unproved, budget = 0, MOST_CELLS
    for pair in sorted(candidates, key=lambda pair: sha256("\0".join(pair).encode()).digest()):
        first, second = (tokens.get(name, []) for name in pair)
        cells = len(first) * len(second)
        budget -= cells
        if cells > CELLS or budget < 0:  # the run took a lower bound, or the comparison would take too long here
            unproved += 1
            found |= {pair: claimed[pair]} if pair in claimed else {}
            continue
        common, total = count_common(first, second), len(first) + len(second)
        if common and Fraction(2 * common, total) >= share:
            found[pair] = 2 * common / total
    what = f"{unproved:,} of {len(candidates):,} pairs of texts not compared: `edit` of the run is taken"
    return Confirmed(found, what if unproved else "")


def ends_of(recounted: pa.Table) -> set[Pair]:
    """Return the pairs of RECOUNTED, the smaller id first."""
    ends = zip(recounted["probe"].to_pylist(), recounted["other"].to_pylist(), strict=True)
    return {(min(pair), max(pair)) for pair in ends}


def claims_of(run: FinishedRun) -> dict[Pair, float]:
    """Return `edit` of each pair of nodes in `pairs`, read from `folded`."""
    rows = run.sql("SELECT node_a, node_b, least_edit FROM folded WHERE least_edit IS NOT NULL").to_pylist()
    return {(row["node_a"], row["node_b"]): row["least_edit"] for row in rows}


def read_whole(run: FinishedRun, names: set[str]) -> dict[str, str]:
    """Read the texts of documents by id again from the inputs of a run.

    Raises:
        NddupError: if an input changed or no longer exists.
    """
    wanted = pa.table({"doc_id": pa.array(sorted(names), pa.string())})
    text = """
        SELECT /*+ BROADCAST(w) */ d.doc_id, d.source, d.content_fingerprint
        FROM documents AS d JOIN wanted AS w ON d.doc_id = w.doc_id
    """
    rows = run.sql(text, wanted=wanted).to_pylist()
    places = {row["doc_id"]: (row["source"], row["content_fingerprint"]) for row in rows}
    found = read_texts(run.path, places, master=None, characters=None)
    return dict(zip(found["doc_id"].to_pylist(), found["text"].to_pylist(), strict=True))


def keep_confirmed(recounted: pa.Table, confirmed: Mapping[Pair, float]) -> pa.Table:
    """Return the confirmed rows of RECOUNTED, with the edit similarity as `edit` and as `likeness`, their rank."""
    ends = zip(recounted["probe"].to_pylist(), recounted["other"].to_pylist(), strict=True)
    edits = pa.array([confirmed.get((min(pair), max(pair))) for pair in ends], pa.float64())
    kept = recounted.filter(pc.is_valid(edits))
    for name in ("edit", "likeness"):
        kept = kept.set_column(kept.schema.get_field_index(name), name, edits.drop_null())
    return kept
