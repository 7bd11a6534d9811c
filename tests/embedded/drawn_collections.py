"""Random collections of sketches; by definition, their near-duplicates and the components represented by leaders."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from nddup.ground.arrays import Ragged
from nddup.settings import plan
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.sketching.minhash import SLOT_BITS
from nddup.tables import DOCUMENTS

Sketch = frozenset[int]
Named = TypeVar("Named")
SIZE = 8

KINDS: dict[str, dict[str, Any]] = {
    "resemblance": {"pairs": {"threshold": 0.6}},
    "share": {"sketch": {"kind": "mod-m"}, "pairs": {"measure": "overlap", "threshold": 0.6}},
    "count": {"pairs": {"measure": "overlap", "threshold": 4}},
    "containment": {
        "sketch": {"kind": "mod-m"}, "pairs": {"measure": "containment", "threshold": 0.7},
        "clusters": {"mode": "partition"},
    },
    "bands": {"sketch": {"kind": "minhash", "bands": 4, "rows": 2}, "pairs": {"threshold": 0.5}},
    "runs": {"sketch": {"kind": "super", "rows": 3}, "pairs": {"threshold": 0.5}},
}  # fmt: skip


class Document(NamedTuple):
    """The fields of a document that matter here."""

    name: str
    tokens: int
    sketch: Sketch


class Graph(NamedTuple):
    """The pairs of distinct sketches, their components, and the components with more than `pairs.max_edges` pairs."""

    pairs: set[frozenset[Sketch]]
    components: list[frozenset[Sketch]]
    large: set[frozenset[Sketch]]


@dataclass(frozen=True)
class Law:
    """The relations of sketches under given settings, by definition."""

    config: Config

    def is_near(self, a: Sketch, b: Sketch) -> bool:
        """Whether two sketches are near-duplicates."""
        threshold, common = plan.threshold_of(self.config), len(a & b)
        limit = Fraction(threshold.numerator, threshold.denominator)
        if common == 0 or threshold.is_count:
            return 0 < common >= limit
        if threshold.is_containment:
            return common >= limit * min(len(a), len(b))
        if threshold.measure == "overlap":
            return common >= limit * max(len(a), len(b))
        return self._resemblance(a, b) >= limit

    def _resemblance(self, a: Sketch, b: Sketch) -> Fraction:
        if plan.kind_of(self.config.sketch).by_slots:
            return Fraction(len(a & b), SIZE)
        union = sorted(a | b)
        if max(len(a), len(b)) >= SIZE:
            union = union[:SIZE]
        return Fraction(len(a & b & set(union)), len(union))

    def may_meet(self, a: Sketch, b: Sketch) -> bool:
        """Whether two sketches are compared: for kinds that find pairs by keys, if they have a key in common."""
        finder = plan.finder_of(self.config)
        if finder is None:
            return True
        keys = finder.keys(as_ragged([a, b]))
        first, second = np.split(keys.values, keys.offsets[1:-1])
        return bool(np.intersect1d(first, second).size)

    def graph_of(self, documents: Sequence[Document]) -> Graph:
        """Return all pairs of distinct sketches, and their components."""
        sketches = list(dict.fromkeys(document.sketch for document in documents))
        pairs = {frozenset(p) for p in combinations(sketches, 2) if self.is_near(*p) and self.may_meet(*p)}
        components = connect(sketches, pairs)
        most = self.config.pairs.max_edges
        large = {c for c in components if sum(p <= c for p in pairs) > most}
        return Graph(pairs, components, large if plan.comparison_limits(self.config) else set())


def connect(sketches: Sequence[Named], pairs: set[frozenset[Named]]) -> list[frozenset[Named]]:
    """Return the connected components of sketches, or of their names; one without a pair is one of its own."""
    components = {sketch: frozenset([sketch]) for sketch in sketches}
    for first, second in map(tuple, pairs):
        whole = components[first] | components[second]
        components |= dict.fromkeys(whole, whole)
    return list(dict.fromkeys(components.values()))


def config_of(kind: str, **pairs: int) -> Config:
    """Return the settings of a sketch kind with `SIZE` ids, and these settings of the section `pairs`."""
    given = KINDS[kind]
    sketch = {"size": SIZE, **given.get("sketch", {})}
    settings = {
        **given,
        "sketch": sketch,
        "pairs": {"confirm": "none", **given["pairs"], **pairs},
        "output": {"report": False},
    }
    if sketch.get("kind") == "mod-m":
        del sketch["size"]
    return build_config(settings, origin="test")


def draw(kind: str, seed: int, *, number: int, prefix: str) -> list[Document]:
    """Draw documents in overlapping families: families share features, and some sketches are equal."""
    random, found = np.random.default_rng(seed), []
    changed, families = random.uniform(0.02, 0.3), int(random.integers(1, 6))
    for place in range(number):
        step = int(random.integers(0, families)) * int(random.integers(1, 7))
        ids = np.arange(SIZE) + (step * np.arange(SIZE) if kind == "bands" else step)
        ids = np.where(random.random(SIZE) < changed, random.integers(0, 60, SIZE), ids)
        if kind == "bands":
            ids = (ids << SLOT_BITS) + np.arange(SIZE)
        elif random.random() < 0.3:
            ids = ids[: random.integers(3, SIZE + 1)]
        found.append(Document(f"{prefix}{place}", int(random.integers(5, 9)), frozenset(ids.tolist())))
    return found


def as_ragged(sketches: Sequence[Sketch]) -> Ragged:
    """Return the sketches as rows of ascending ids."""
    offsets = np.concatenate([[0], np.cumsum([len(sketch) for sketch in sketches])]).astype(np.int64)
    return Ragged(offsets, np.array([i for sketch in sketches for i in sorted(sketch)], np.uint64))


def as_table(documents: Sequence[Document]) -> pa.Table:
    """Return DOCUMENTS of a collection in this order."""
    groups: dict[Sketch, str] = {}
    for document in documents:
        groups[document.sketch] = min(document.name, groups.get(document.sketch, document.name))
    rows = [
        {
            "doc_key": place, "doc_id": name, "url": None, "source": "a", "record": place + 1, "n_tokens": tokens,
            "n_features": tokens, "content_fingerprint": name.encode().ljust(16), "group": groups[sketch],
            "sketch": sorted(sketch), "signature": None,
        }
        for place, (name, tokens, sketch) in enumerate(documents)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=DOCUMENTS.arrow)
