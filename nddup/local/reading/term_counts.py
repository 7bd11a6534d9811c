"""The lexicon of a run: counted from its collection, or read from another run's folder."""

import json
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.errors import ConfigError
from nddup.local.plan import Plan
from nddup.local.reading.workers import Workers
from nddup.scanning.collection import Collection
from nddup.scanning.count_words import WordCounter
from nddup.scanning.local_paths import local_path
from nddup.sketching.words.lexicon import COUNTED, sort_ids
from nddup.sketching.words.word_sketches import WordRule
from nddup.working_tables import LEXICON, TERMS

NOTE = "lexicon.json"


class Lexicon(NamedTuple):
    """LEXICON, its ids as bytes of ascending uint64, and the counts of the collection it was made from."""

    table: pa.Table
    ids: bytes
    counts: dict[str, int]


def find_lexicon(source: Collection | pa.Table, plan: Plan, workers: Workers) -> Lexicon | None:
    """Return the words that describe documents, counted in a pass of their own, or as another run saved them.

    Returns None where the kind needs no lexicon.

    Raises:
        ConfigError: for a saved lexicon that is missing, or made by other settings.
        CapacityError: for too many words.
    """
    words, saved = plan.sketching().recipe.words, plan.config.lexicon.saved
    if words is None or not words.needs_lexicon:
        return None
    if saved is not None:
        table, counted = take_saved(saved, words)
    else:
        consumer = WordCounter(words.lexicon, plan.text, plan.config.input.min_tokens)
        terms = sum_terms(workers.scan(source, consumer, plan.limits))
        occurrences = terms["occurrences"].to_numpy()
        commonest = int(occurrences.max(initial=0))
        least, most = words.lexicon.interval(commonest)
        table = terms.filter(pa.array((occurrences >= least) & (occurrences <= most)))
        counted = {"counted": len(terms), "occurrences": int(occurrences.sum()), "commonest": commonest}
    ids = sort_ids(table["feature"].to_numpy())
    return Lexicon(table, ids, {f"lexicon_{name}": number for name, number in counted.items()})


def sum_terms(counted: pa.Table) -> pa.Table:
    """Sum partial counts to TERMS with each term once, sorted by term."""
    sums = counted.group_by(["term", "feature"]).aggregate([("occurrences", "sum"), ("documents", "sum")])
    whole = sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])
    return whole.select(TERMS.names).cast(TERMS.arrow).sort_by("term")


def take_saved(path: str, words: WordRule) -> tuple[pa.Table, dict[str, int]]:
    """Read the lexicon that another run saved, and what was counted for it.

    Raises:
        ConfigError: if there is none, or if it was made by other settings; the message names both settings.
    """
    where, ours = path.rstrip("/"), words.lexicon.key
    try:
        note = json.loads(Path(local_path(where), NOTE).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"lexicon.saved {path}: holds no lexicon: {NOTE} cannot be read") from error
    if note.get("made_by") != ours:
        raise ConfigError(f"lexicon.saved {path}: made by other settings, [{note.get('made_by')}]; not by [{ours}]")
    try:
        table = pq.read_table(Path(local_path(where), "lexicon")).select(LEXICON.names).cast(LEXICON.arrow)
    except OSError as error:
        raise ConfigError(f"lexicon.saved {path}: holds no lexicon: its folder lexicon is missing") from error
    return table, {name: int(note[name] or 0) for name in COUNTED}
