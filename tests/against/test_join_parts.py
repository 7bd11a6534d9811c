"""B in parts, and filtered shingles, against one pass with all shingles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.against.find_hits import Hits, find_hits
from nddup.against.judge import Holders, Judged, Rules, judge
from nddup.against.share_records import (
    CONTEXT,
    FilteredShingles,
    ShareRecords,
    Shingles,
    first_numbers,
    flatten,
    join_shared,
    number_items,
    verify_filter_hits,
)
from nddup.against.shingle_table import ALL_BITS, Known, make_filter, make_known
from nddup.ground.columns import fingerprints_of
from nddup.reading.outcomes import Record
from nddup.scanning.found import LocatedRecord, TextRule, text_buffers
from tests.samples_by_night import examples

WORDS = ["a", "B", "é", "薔薇", "k" * (CONTEXT // 2)]
texts = st.lists(st.sampled_from(WORDS), max_size=16).map(" ".join)
collections = st.lists(texts, min_size=1, max_size=6)
rules = st.builds(
    Rules, of=st.sampled_from(["item", "document", "any"]), max_document_frequency=st.integers(1, 3),
    min_shingles=st.integers(1, 2),
)  # fmt: skip


@dataclass(frozen=True)
class Here:
    """A shingle table in this process."""

    known: Known

    def find(self, texts: Sequence[str], *, counts: bool) -> Hits:
        """As `Shingles.find`."""
        return find_hits(*text_buffers(texts), self.known, counts=counts)


def share(shingles: Shingles, documents: list[str]) -> pa.Table:
    """Return the rows that a pass over the documents leaves."""
    records = [Record(str(n), None, (text,), is_markup=False) for n, text in enumerate(documents)]
    found = [LocatedRecord("a", 0, n, record, b"") for n, record in enumerate(records)]
    consumer = ShareRecords(shingles, TextRule(), counts=True)
    table = pa.Table.from_batches(consumer.batches([found], None), consumer.table.arrow)
    return table.filter(pc.equal(table["what"], "document"))


def judge_shared(parts: list[Known], shared: pa.Table, asked: Rules) -> Judged:
    offsets, numbers = flatten(shared["numbers"])
    seq, sizes = shared["seq"].to_numpy(), shared["n_shingles"].to_numpy()
    holders = Holders(offsets, numbers, fingerprints_of(shared["content_fingerprint"]), sizes, seq, seq % 2)
    return judge(number_items(parts), holders, asked)


@pytest.mark.thorough
@settings(max_examples=examples(50, 150), deadline=None)
@given(items=collections, documents=collections, cut=st.integers(0, 6), length=st.integers(1, 3), asked=rules)
def test_what_is_judged_does_not_depend_on_the_parts(
    items: list[str], documents: list[str], cut: int, length: int, asked: Rules
) -> None:
    """Verdicts do not depend on how B is divided into parts, which may be empty or have shingles in common."""
    whole = [make_known(*text_buffers(items), length)]
    parts = [make_known(*text_buffers(some), length) for some in (items[:cut], items[cut:])]

    once = share(Here(whole[0]), documents)
    joined = join_shared([share(Here(known), documents) for known in parts], first_numbers(parts))

    for name in ("seq", "content_fingerprint", "n_shingles", "region_starts", "regions"):
        assert joined[name].to_pylist() == once[name].to_pylist()
    expected, judged = judge_shared(whole, once, asked), judge_shared(parts, joined, asked)
    for name in ("sizes", "suppressed", "verdicts", "best", "containment", "covered"):
        assert np.array_equal(getattr(judged, name), getattr(expected, name)), name
    assert sorted(judged.cells.tolist()) == sorted(expected.cells.tolist())
    is_first = ~number_items(parts).repeated
    assert np.array_equal(judged.frequencies[is_first], expected.frequencies)
    assert np.array_equal(judged.is_suppressed[is_first], expected.is_suppressed)


@settings(max_examples=examples(40, 100), deadline=None)
@given(items=collections, documents=collections, length=st.integers(1, 3), is_full=st.booleans())
def test_what_a_filter_lets_pass_is_settled(
    items: list[str], documents: list[str], length: int, *, is_full: bool
) -> None:
    """Filtered rows, once settled, are those of a pass with the shingles themselves, even if the filter passes all."""
    known = make_known(*text_buffers(items), length)
    words = make_filter(known.keys)
    words = np.full_like(words, ALL_BITS) if is_full else words

    possible = share(FilteredShingles(words.tobytes(), length), documents)

    assert verify_filter_hits(possible, known).to_pylist() == share(Here(known), documents).to_pylist()
