"""Verdicts and spans, compared with sets of token tuples."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.against.find_hits import Hits, find_hits
from nddup.against.judge import CLEAN, COMMON, FOUND, PART, SHORT, Holders, Judged, Rules, judge
from nddup.against.share_records import number_items
from nddup.against.shingle_table import Known, make_known
from nddup.against.spans import find_runs
from nddup.scanning.found import text_buffers
from nddup.sketching.tokens import tokenise

texts = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)
collections = st.lists(texts, min_size=1, max_size=6)
rules = st.builds(
    Rules,
    of=st.sampled_from(["item", "document", "any"]),
    threshold=st.sampled_from([Fraction(1, 3), Fraction(4, 5), Fraction(1), Fraction(1, 10**9)]),
    max_document_frequency=st.integers(1, 4),
    min_shingles=st.integers(1, 3),
)


Shingle = tuple[str, ...]


def set_of(text: str, length: int) -> set[Shingle]:
    tokens = tokenise(text)
    return {tuple(tokens[t : t + length]) for t in range(len(tokens) - length + 1)}


def find(items: list[str], documents: list[str], length: int, asked: Rules) -> tuple[Known, Hits, Judged]:
    """Judge items; every second document is in group 1, and ids are positions."""
    known = make_known(*text_buffers(items), length)
    hits = find_hits(*text_buffers(documents), known, counts=True)
    names = {text: place for place, text in enumerate(documents)}
    contents = np.array([[names[text], 7] for text in documents], np.uint64)
    ranks = np.arange(len(documents))
    holders = Holders(hits.offsets, hits.numbers, contents, hits.n_shingles, ranks, ranks % 2)
    return known, hits, judge(number_items([known]), holders, asked)


@settings(max_examples=200, deadline=None)
@given(items=collections, documents=collections, length=st.integers(1, 3), asked=rules)
def test_verdicts_are_those_of_sets(items: list[str], documents: list[str], length: int, asked: Rules) -> None:
    """Suppression, verdict, best document, containment, cover and matrix follow their definitions."""
    _, _, judged = find(items, documents, length, asked)
    held = [set_of(text, length) for text in documents]
    by_content = [set_of(text, length) for text in set(documents)]

    # Only shingles of B are counted, so only they can be suppressed, in documents too.
    of_items = set().union(*(set_of(text, length) for text in items))
    many = {one for one in of_items if sum(one in there for there in by_content) > asked.max_document_frequency}

    for row, text in enumerate(items):
        whole = set_of(text, length)
        left = whole - many
        assert (judged.sizes[row], judged.suppressed[row]) == (len(whole), len(whole & many))
        if len(left) < asked.min_shingles:
            assert judged.verdicts[row] == (SHORT if len(whole) < asked.min_shingles else COMMON)
            assert row not in judged.cells[:, 0]
            continue

        shares = [share_of(left, there, many, asked) for there in held]
        top = max(shares)
        expected = CLEAN if top == 0 else FOUND if top >= asked.threshold else PART
        assert judged.verdicts[row] == expected
        assert judged.best[row] == (shares.index(top) if top else -1)
        assert judged.containment[row] == float(top)
        assert judged.covered[row] == len(left & set().union(*held)) / len(left)
        for group in (0, 1):
            here = max(shares[group::2], default=Fraction(0))
            cell = FOUND if here >= asked.threshold else PART
            told = judged.cells[(judged.cells[:, 0] == row) & (judged.cells[:, 1] == group), 2].tolist()
            assert told == ([cell] if here else [])


def share_of(left: set[Shingle], there: set[Shingle], suppressed: set[Shingle], asked: Rules) -> Fraction:
    """Return the share that `asked.of` selects; `left` is the item's set after suppression."""
    common = len(left & there)
    if not common:
        return Fraction(0)
    of_item, of_document = Fraction(common, len(left)), Fraction(common, len(there - suppressed))
    return {"item": of_item, "document": of_document, "any": max(of_item, of_document)}[asked.of]


@settings(max_examples=200, deadline=None)
@given(items=collections, document=texts, length=st.integers(1, 3))
def test_runs_are_common_and_cover_what_is_shared(items: list[str], document: str, length: int) -> None:
    """Each run has equal tokens on both sides and cannot be longer; the runs cover all shared shingles."""
    known, hits, judged = find(items, [document], length, Rules(max_document_frequency=9))
    there, shared = tokenise(document), set_of(document, length)

    for row, text in enumerate(items):
        here = tokenise(text)
        item = known.numbers[known.firsts[row] : known.firsts[row + 1]]
        runs = find_runs(item, hits.tokens, hits.numbers, judged.is_suppressed)

        covered = set()
        for at, hit, size in zip(*(values.tolist() for values in runs), strict=True):
            place, n = int(hits.tokens[hit]), size + length - 1
            assert here[at : at + n] == there[place : place + n]
            longer = here[at : at + n + 1]
            assert len(longer) == n or longer not in [there[t : t + n + 1] for t in range(len(there))]
            covered |= {tuple(here[t : t + length]) for t in range(at, at + size)}
        assert covered == set_of(text, length) & shared
