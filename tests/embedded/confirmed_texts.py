"""Small collections of texts, and their near-duplicates by definition if texts confirm pairs (`pairs.confirm`)."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tests.counted_rows import once_each
from tests.embedded import brute_force

SIZE = 25
CANDIDATES = {0.4: 3, 0.6: 7, 0.8: 13}
"""The least equal ids of a candidate at each threshold: P(Bin(25, t) < c) < 1 / 1000, and not for c + 1."""

WORDS = [f"w{number}" for number in range(30)]


class Case(NamedTuple):
    """Texts by id, and the settings under which they are compared."""

    texts: dict[str, str]
    length: int
    threshold: float
    edit_threshold: float
    confirm: str = "edit"
    unit: str = "word"

    @property
    def table(self) -> pa.Table:
        """The texts as `find_duplicates` takes them."""
        return pa.table({"id": list(self.texts), "text": list(self.texts.values())})

    @property
    def settings(self) -> dict[str, Any]:
        """Sections of the settings."""
        pairs: dict[str, Any] = {"threshold": self.threshold, "confirm": self.confirm}
        pairs |= {"edit_threshold": self.edit_threshold} if self.confirm == "edit" else {}
        return {"shingle": {"length": self.length, "unit": self.unit}, "sketch": {"size": SIZE}, "pairs": pairs}

    @property
    def rule(self) -> brute_force.Rule:
        """When two sketches are a candidate pair."""
        share = Fraction(repr(self.threshold))
        if self.confirm == "resemblance":
            candidates = Fraction(CANDIDATES[self.threshold], SIZE)
            return brute_force.Rule("resemblance", candidates, "smallest", SIZE, share)
        return brute_force.Rule("resemblance", share, "smallest", SIZE)

    @property
    def least(self) -> Fraction:
        """The threshold of what is compared of two texts."""
        return Fraction(repr(self.edit_threshold if self.confirm == "edit" else self.threshold))

    def tokens(self, name: str) -> tuple[str, ...]:
        """Return the tokens of a text: its words, or the characters of these with single blanks between them."""
        words = self.texts[name].split()
        return tuple(words if self.unit == "word" else " ".join(words))

    def compared(self, name: str) -> tuple[str, ...] | frozenset[tuple[str, ...]]:
        """Return what is compared of a text: its tokens, or the set of its shingles."""
        tokens = self.tokens(name)
        if self.confirm == "edit":
            return tokens
        n = max(len(tokens) - self.length + 1, 1)
        return frozenset(tokens[at : at + self.length] for at in range(n))

    def similarity(self, first: str, second: str) -> Fraction:
        """Return the similarity of two texts."""
        if self.confirm == "edit":
            return edit(self.tokens(first), self.tokens(second))
        a, b = (frozenset(self.compared(name)) for name in (first, second))
        return Fraction(len(a & b), len(a | b))


def draw_case(seed: int) -> Case:
    """Draw families of texts with words replaced, removed, repeated and moved; some texts or sketches are equal."""
    random = np.random.default_rng(seed)
    texts = {}
    for family in range(random.integers(1, 4)):
        words = random.choice(WORDS, random.integers(4, 40)).tolist()
        for member in range(random.integers(1, 7)):
            if random.random() < 0.7:
                keep = random.random(len(words)) > random.choice([0.05, 0.2])
                words = [str(random.choice(WORDS)) if random.random() < 0.08 else word for word in words]
                words = [word for word, stays in zip(words, keep, strict=True) if stays] or words
            at = int(random.integers(0, len(words)))
            moved = words[at:] + words[:at] if random.random() < 0.3 else words
            texts[f"{random.choice(list('abc'))}{family}{member}"] = " ".join(moved)
    chosen = random.choice([0.4, 0.6]), random.choice([0.5, 0.77, 0.8])
    return Case(texts, int(random.integers(1, 3)), float(chosen[0]), float(chosen[1]))


def draw_together(seeds: Iterable[int]) -> Case:
    """Return the families of several cases as one collection; the cases have no word in common."""
    texts = {}
    for seed in seeds:
        for name, text in draw_case(seed).texts.items():
            texts[f"{name}-{seed}"] = " ".join(f"{word}s{seed}" for word in text.split())
    return Case(texts, 2, 0.4, 0.77)


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the LCS length by its recurrence, cell by cell."""
    before = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for place, other in enumerate(second):
            row.append(before[place] + 1 if word == other else max(before[place + 1], row[-1]))
        before = row
    return before[-1]


def edit(a: Sequence[str], b: Sequence[str]) -> Fraction:
    """Return the edit similarity of two sequences of tokens."""
    return Fraction(2 * longest_common(a, b), max(len(a) + len(b), 1))


def find_confirmed(case: Case, documents: Mapping[str, Any]) -> dict[tuple[str, str], Fraction]:
    """Return the pairs that are near by sketches and by texts, with their edit similarity."""
    candidates = brute_force.find_pairs(documents, case.rule)
    measured = {pair: case.similarity(*pair) for pair in candidates}
    return {pair: share for pair, share in measured.items() if share >= case.least}


def keep_longest(case: Case, pairs: Mapping[tuple[str, str], Fraction]) -> dict[str, str | None]:
    """Return the `duplicate_of` of each document: of kept ones before it the most similar, ties by policy, or None."""

    def turn(name: str) -> tuple[int, str]:
        return -len(case.tokens(name)), name

    of: dict[str, str | None] = {}
    for name in sorted(case.texts, key=turn):
        near = [other for other, leader in of.items() if leader is None and tuple(sorted((name, other))) in pairs]
        best = (
            min(near, key=lambda other: (-pairs[min(name, other), max(name, other)], turn(other))) for _ in near[:1]
        )
        of[name] = next(best, None)
    return of


def require_as_defined(case: Case, tables: Mapping[str, list[dict[str, Any]]]) -> None:
    """Assert that the groups, pairs, clusters and keep-list of a run are those of the definitions."""
    documents = once_each((row["doc_id"], row) for row in tables["documents"])
    pairs = find_confirmed(case, documents)

    groups: dict[Any, str] = {}
    for name in sorted(case.texts):
        groups.setdefault(case.compared(name), name)
    assert {name: row["group"] for name, row in documents.items()} == {n: groups[case.compared(n)] for n in case.texts}
    measure = "edit" if case.confirm == "edit" else "resemblance"
    assert once_each(((row["doc_a"], row["doc_b"]), row[measure]) for row in tables["pairs"]) == {
        pair: float(share) for pair, share in pairs.items()
    }
    for row in tables["pairs"]:
        counts = row["common"], row["shingles_a"], row["shingles_b"]
        a, b = (frozenset(case.compared(row[end])) for end in ("doc_a", "doc_b"))
        assert counts == ((None,) * 3 if case.confirm == "edit" else (len(a & b), len(a), len(b)))

    found = once_each((frozenset(row["members"]), row["support"]) for row in tables["clusters"])
    assert found == brute_force.find_maximal(documents, set(pairs), case.rule)
    assert once_each((row["doc_id"], row["duplicate_of"]) for row in tables["keep"]) == keep_longest(case, pairs)
