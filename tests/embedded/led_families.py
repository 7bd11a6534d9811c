"""Families of texts with copies, forced documents and limits of what is lost, and what is defined of them."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from nddup.mining.keep_verdicts import FREE, KEPT, REMOVED
from tests.embedded import brute_force
from tests.embedded.confirmed_texts import CANDIDATES, SIZE

Pair = tuple[str, str]
LENGTH, THRESHOLD = 2, 0.4


class Drawn(NamedTuple):
    """Texts by id, the documents that are forced, and the settings under which they are compared."""

    texts: dict[str, str]
    forced: dict[str, int]
    max_edges: int
    most_lost: float | None
    policy: str

    @property
    def settings(self) -> dict[str, Any]:
        """Sections of the settings, but the file of forced documents."""
        return {
            "shingle": {"length": LENGTH},
            "sketch": {"size": SIZE},
            "pairs": {"threshold": THRESHOLD, "confirm": "resemblance", "max_edges": self.max_edges},
            "keep": {"policy": self.policy, "max_lost": self.most_lost},
            "output": {"report": False, "texts": 0},
        }

    def shingles(self, name: str) -> frozenset[tuple[str, ...]]:
        """Return the distinct shingles of a text."""
        words = self.texts[name].split()
        return frozenset(tuple(words[at : at + LENGTH]) for at in range(max(len(words) - LENGTH + 1, 1)))

    def order(self) -> list[str]:
        """Return the ids in the order of preference: forced to be kept, free, forced out."""
        places = {name: place for place, name in enumerate(self.texts)}

        def turn(name: str) -> int:
            longest = -len(self.texts[name].split())
            return {"first-id": 0, "first": places[name], "longest": longest}[self.policy]

        return sorted(self.texts, key=lambda name: (self.forced.get(name, FREE), turn(name), name))


def draw(seed: int, families: int) -> Drawn:
    """Draw families without a word in common: members grow, shrink and change, some are copies, some are forced."""
    random = np.random.default_rng(seed)
    texts: dict[str, str] = {}
    for family in range(families):
        grown = [[f"f{family}w{place}" for place in range(random.integers(12, 45))]]
        changed, sizes = random.choice([0.03, 0.1, 0.2]), int(random.integers(2, 13))
        for _ in range(sizes):
            words = list(grown[random.integers(len(grown))])
            way = random.random()
            if way < 0.25:
                words += [f"f{family}n{random.integers(60)}" for _ in range(random.integers(1, 8))]
            elif way < 0.45:
                words = words[: -int(random.integers(1, 6))] or words
            elif way < 0.8:
                words = [f"f{family}x{random.integers(99)}" if random.random() < changed else word for word in words]
            grown.append(words)
        names = random.permutation(len(grown)).tolist()
        texts |= {f"{family:03}-{name:02}": " ".join(words) for name, words in zip(names, grown, strict=True)}
    share = random.choice([0.0, 0.0, 0.15, 0.4])
    forced = {name: int(random.choice([KEPT, REMOVED])) for name in texts if random.random() < share}
    most = [None, 0.0, 0.02, 0.1, 0.3][random.integers(5)]
    policy = str(random.choice(["longest", "first-id", "first"]))
    return Drawn(texts, forced, int(random.choice([1, 2, 3, 6, 12])), most, policy)


class Defined(NamedTuple):
    """What the definitions say of a collection."""

    near: dict[Pair, Fraction]
    """The near-duplicate pairs of documents, with their resemblance; equal texts too."""

    led: set[str]
    """The documents of components of more than `max_edges` pairs."""

    leaders: set[str]
    """Those of them that lead."""

    stands: dict[str, str | None]
    """The document that replaces each; None if it is kept, or forced out alone."""

    limited: set[str]
    """The documents of components in which some were compared with heads only."""


def define(drawn: Drawn, documents: Mapping[str, Any]) -> Defined:
    """Return what becomes of each document, comparing every two."""
    rule = brute_force.Rule(
        "resemblance", Fraction(CANDIDATES[THRESHOLD], SIZE), "smallest", SIZE, Fraction(repr(THRESHOLD))
    )
    sets = {name: drawn.shingles(name) for name in drawn.texts}
    candidates, near = brute_force.find_pairs(documents, rule), {}
    for a, b in candidates:
        likeness = Fraction(len(sets[a] & sets[b]), len(sets[a] | sets[b]))
        if likeness >= Fraction(repr(THRESHOLD)):
            near[a, b] = likeness

    defined = Defined(near, set(), set(), {}, set())
    alone = {frozenset([name]) for name in drawn.texts} - {frozenset([name]) for pair in near for name in pair}
    for component in brute_force.find_components(near.keys()) | alone:
        distinct = {(sets[a], sets[b]) for a, b in combinations(sorted(component), 2) if sets[a] != sets[b]
                    and (a, b) in near}  # fmt: skip
        pairs = {frozenset(pair) for pair in distinct}
        is_led = len(pairs) > drawn.max_edges
        _decide(drawn, [name for name in drawn.order() if name in component], sets, defined, is_led=is_led)
    return defined


def _decide(  # noqa: C901 - a definition in one piece
    drawn: Drawn, order: list[str], sets: Mapping[str, frozenset[Any]], defined: Defined, *, is_led: bool
) -> None:
    """Decide the documents of a component, in the order of preference."""
    near = defined.near
    places = {name: place for place, name in enumerate(order)}

    def of(name: str) -> int:
        return drawn.forced.get(name, FREE)

    def likeness(a: str, b: str) -> Fraction | None:
        return near.get((min(a, b), max(a, b)))

    def is_lossless(one: str, other: str) -> bool:
        lost = Fraction(len(sets[one] - sets[other]), len(sets[one]))
        return drawn.most_lost is None or of(one) == REMOVED or lost <= Fraction(repr(drawn.most_lost))

    def best(one: str, others: Iterable[str]) -> str | None:
        fit = [other for other in others if likeness(one, other) is not None and is_lossless(one, other)]
        return min(fit, key=lambda other: (-(likeness(one, other) or 0), places[other]), default=None)

    first = dict[frozenset[tuple[str, ...]], str]()
    for name in order:
        first.setdefault(sets[name], name)
    kept: list[str] = []
    heads: list[str] = []
    pairs = 0
    for name in order:
        is_copy = first[sets[name]] != name
        limited = is_led and drawn.most_lost is not None and pairs > drawn.max_edges
        if limited and not is_copy:
            defined.limited.update(order)
        pool = heads if limited and not is_copy else kept
        met = [other for other in pool if likeness(name, other) is not None]
        if not is_copy:  # distinct texts are counted
            pairs += len({sets[other] for other in met})
        stands = best(name, pool)
        if of(name) == KEPT or (of(name) != REMOVED and stands is None):
            kept.append(name)
            heads += [name] if of(name) == KEPT or not met else []
            stands = None
        defined.stands[name] = stands
        leads = [other for other in order[: places[name]] if other in defined.leaders and likeness(name, other)]
        is_paired = any(likeness(name, other) for other in order if sets[other] != sets[name])
        if is_led and is_paired and (of(name) == KEPT or not leads):
            defined.leaders.add(name)
    if is_led:
        defined.led.update(order)


def require_as_defined(drawn: Drawn, tables: Mapping[str, list[dict[str, Any]]]) -> set[str]:
    """Assert that pairs, clusters and keep-list are those of the definitions; return what the collection shows."""
    defined = define(drawn, {row["doc_id"]: row for row in tables["documents"]})
    sets = {name: drawn.shingles(name) for name in drawn.texts}
    keep = {row["doc_id"]: row for row in tables["keep"]}
    removed = {name for name, other in defined.stands.items() if other is not None or drawn.forced.get(name) == REMOVED}
    copies = {name for name in sets if sum(sets[name] == other for other in sets.values()) > 1}
    loose = defined.limited & copies  # what a copy was compared with depends on its first one

    assert {name for name, row in keep.items() if not row["kept"]} - loose == removed - loose
    assert {name: row["duplicate_of"] for name, row in keep.items() if name not in loose} == {
        name: other for name, other in defined.stands.items() if name not in loose
    }
    assert {name for name, row in keep.items() if row["leader"]} == defined.leaders

    listed = {(row["doc_a"], row["doc_b"]) for row in tables["pairs"]}
    of_leaders = {sets[name] for name in defined.leaders}
    due = {
        (a, b) for a, b in defined.near
        if a not in defined.led or sets[a] == sets[b] or {sets[a], sets[b]} & of_leaders
    }  # fmt: skip
    replaced = {(sets[name], sets[row["duplicate_of"]]) for name, row in keep.items() if row["duplicate_of"]}
    due |= {(a, b) for a, b in defined.near if replaced & {(sets[a], sets[b]), (sets[b], sets[a])}}
    assert due <= listed <= defined.near.keys()
    assert all({a, b} & copies for a, b in listed - due)  # kept ones that might have replaced a later copy

    clusters = [frozenset(row["members"]) for row in tables["clusters"]]
    assert len(clusters) == len(set(clusters))
    led = [members for members in clusters if len({sets[name] for name in members}) > 1 and members & defined.led]
    assert not any(one < other for one in led for other in led)
    assert all(any(sets[name] in of_leaders for name in members) for members in led)
    assert all(pair in listed for members in clusters for pair in combinations(sorted(members), 2))
    assert {name for pair in defined.near for name in pair} == set().union(*clusters)
    return {
        *(["led"] if defined.led else []), *(["limited"] if defined.limited else []),
        *(["forced"] if drawn.forced else []), *(["lost"] if drawn.most_lost is not None else []),
        *(["unled kept"] if {n for n in defined.led if keep[n]["kept"]} - defined.leaders else []),
    }  # fmt: skip
