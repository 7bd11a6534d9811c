"""Whether leaders represent a component depends on that component alone: on its number of pairs, by definition."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.embedded import steps as engine
from nddup.embedded.workers import Workers
from nddup.errors import CapacityError
from nddup.settings.schema import Config
from tests.counted_rows import once
from tests.embedded.drawn_collections import KINDS, Document, Law, as_table, config_of, draw
from tests.samples_by_night import every, examples, first

MESSAGE = r"^a family of [0-9]+ sketches .* pairs\.max_comparisons \([0-9]+\)[^\n]*$"
ANY = st.integers(0, 2**32)
LED = tuple(kind for kind in KINDS if kind != "containment")


class Made(NamedTuple):
    """The tables of a collection, and the ids of the sketches that leaders represent."""

    pairs: pa.Table
    clusters: pa.Table
    members: pa.Table
    false_components: pa.Table
    keep: pa.Table
    large: set[str]
    counts: dict[str, int]


def make(documents: Sequence[Document], config: Config) -> Made:
    """Run the embedded engine on documents that have been read."""
    with Workers(2) as workers:
        paired = engine.pair(as_table(documents), config, workers)
        clustered = engine.cluster(paired, config, workers)
        kept = engine.keep(paired, clustered, config)
    large = {documents[place].name for place in paired.led.nodes}
    tables = (paired.pairs, clustered.clusters, clustered.members, clustered.false_components, kept.keep)
    return Made(*tables, large, paired.counts | clustered.counts)


def pairs_in(table: pa.Table) -> set[frozenset[str]]:
    """Return the pairs of ids."""
    return once(frozenset(row) for row in zip(table["doc_a"].to_pylist(), table["doc_b"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", every(2, KINDS))
@settings(max_examples=examples(4, 8), deadline=None)
@given(seed=ANY, number=st.integers(2, 45), max_postings=st.integers(2, 9), max_edges=st.integers(1, 60))
def test_the_definition(kind: str, seed: int, number: int, max_postings: int, max_edges: int) -> None:
    """A component has leaders if and only if it has more than `max_edges` pairs; otherwise all its pairs are listed.

    For containment there are no leaders, and here no list is too long.
    """
    postings = 1_000 if kind == "containment" else max_postings
    config = config_of(kind, max_postings=postings, max_edges=max_edges)
    documents = draw(kind, seed, number=number, prefix="d")
    law = Law(config)
    graph, made = law.graph_of(documents), make(documents, config)

    names = {document.sketch: min(d.name for d in documents if d.sketch == document.sketch) for document in documents}
    assert made.large == {names[sketch] for component in graph.large for sketch in component}
    sketch_of = {document.name: document.sketch for document in documents}
    kept = {sketch_of[row["doc_id"]] for row in made.keep.to_pylist() if row["kept"]}
    expected = set()
    for component in graph.components:
        if component in graph.large:
            expected |= {frozenset((a, b)) for a in component & kept for b in component - {a} if law.is_near(a, b)}
        else:
            expected |= {pair for pair in graph.pairs if pair <= component}
    found = {frozenset(sketch_of[name] for name in pair) for pair in pairs_in(made.pairs)}
    assert {pair for pair in found if len(pair) == 2} == expected

    if config.clusters.mode == "all":
        of_leaders = made.clusters.filter(made.clusters["coverage"].to_numpy(zero_copy_only=False) == "documents")
        given_by = {sketch_of[name] for members in of_leaders["members"].to_pylist() for name in members}
        assert given_by == {sketch for component in graph.large for sketch in component}


@pytest.mark.parametrize("seeds", first(1, [range(2), range(6)]), ids=["few", "all"])
@pytest.mark.parametrize("max_postings", first(1, [3, 1_000]))
@pytest.mark.parametrize("kind", every(2, LED))
def test_at_the_limit(kind: str, max_postings: int, seeds: range) -> None:
    """A component of `max_edges` pairs has no leaders, one with one more pair has, with heavy sketches or without."""
    met = 0
    for seed in seeds:
        documents = draw(kind, seed, number=30, prefix="d")
        graph = Law(config_of(kind)).graph_of(documents)
        counts = {component: sum(pair <= component for pair in graph.pairs) for component in graph.components}
        for count in sorted(set(counts.values()) - {0, 1})[-2:]:
            at, below = (
                make(documents, config_of(kind, max_postings=max_postings, max_edges=count - n)) for n in (0, 1)
            )
            assert len(at.large) == sum(len(component) for component, n in counts.items() if n > count)
            assert len(below.large) == sum(len(component) for component, n in counts.items() if n >= count)
            met += len(below.large) < len({document.sketch for document in documents})
    assert met > len(seeds) // 2


@pytest.mark.parametrize("kind", every(2, LED))
@settings(max_examples=examples(2, 6), deadline=None)
@given(
    seed=ANY,
    sizes=st.tuples(st.integers(2, 30), st.integers(1, 40)),
    limits=st.tuples(st.integers(2, 6), st.integers(1, 30)),
)
def test_unrelated_documents_change_nothing(
    kind: str, seed: int, sizes: tuple[int, int], limits: tuple[int, int]
) -> None:
    """Adding documents that make lists longer and heavy, but are near none of the others, changes no row of these."""
    config = config_of(kind, max_postings=limits[0], max_edges=limits[1])
    law, random = Law(config), np.random.default_rng(seed)
    documents = draw(kind, seed, number=sizes[0], prefix="d")
    others = [
        other
        for other in draw(kind, seed + 1, number=sizes[1], prefix="u")
        if not any(other.sketch == mine.sketch or law.is_near(other.sketch, mine.sketch) for mine in documents)
    ]
    places = np.sort(random.integers(0, len(documents) + 1, len(others)))
    cuts = [0, *places.tolist(), len(documents)]
    whole = [d for (low, high), other in zip(pairwise(cuts), [*others, None], strict=True)
             for d in (*documents[low:high], *([other] if other else []))]  # fmt: skip

    alone, together = make(documents, config), make(whole, config)
    names = {document.name for document in documents}
    assert alone.large == together.large & names
    for name in ("pairs", "clusters", "keep", "false_components"):
        before, after = getattr(alone, name).to_pylist(), getattr(together, name).to_pylist()
        key = {"pairs": "doc_a", "keep": "doc_id"}.get(name, "component")
        assert sorted(map(repr, before)) == sorted(repr(row) for row in after if row[key] in names), name
    assert sorted(map(repr, alone.members.to_pylist())) == sorted(
        repr(row) for row in together.members.to_pylist() if row["doc_id"] in names
    )


def test_the_rule_is_met_in_every_way() -> None:
    """Collections as the tests above draw them have heavy sketches with no, one and several large components."""
    wanted: set[object] = {(True, 0), (True, 1), (True, 2), "mixed"}
    seen: set[object] = set()
    for seed in (0, 37, 41, *range(60)):  # the first three are enough, as long as collections are drawn so
        if wanted <= seen:
            break
        config = config_of("resemblance", max_postings=3, max_edges=20)
        documents = draw("resemblance", seed, number=40, prefix="d")
        graph, made = Law(config).graph_of(documents), make(documents, config)
        is_heavy, number = made.counts["crowd"] > 0, len(graph.large)
        seen.add((is_heavy, min(number, 2)))
        seen |= {"mixed"} if is_heavy and any(len(c) > 1 and c not in graph.large for c in graph.components) else set()
    assert wanted <= seen


def test_too_many_comparisons_end_the_run() -> None:
    """A run that needs one comparison more than `max_comparisons` fails with a message that names the setting."""
    documents = draw("resemblance", 3, number=40, prefix="d")
    needed = bisect_left(range(2_000), True, lo=1, key=lambda most: not _fails(documents, most))  # noqa: FBT003
    assert needed > 40
    with pytest.raises(CapacityError, match=MESSAGE):
        make(documents, config_of("resemblance", max_postings=2, max_comparisons=needed - 1))
    assert make(documents, config_of("resemblance", max_postings=2, max_comparisons=needed)).counts["crowd"] > 0


def _fails(documents: Sequence[Document], most: int) -> bool:
    try:
        make(documents, config_of("resemblance", max_postings=2, max_comparisons=most))
    except CapacityError:
        return True
    return False
