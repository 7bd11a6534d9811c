"""The tasks of the pairs stage, without Spark, against a comparison of all sketches, for every measure and division."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching import element_join, elements
from nddup.matching.elements import MOST_BITS, Division, divide
from nddup.matching.overlap_join import LongLists
from nddup.matching.threshold import Threshold, common_needed
from nddup.mining.family_pairs import list_families
from nddup.sketching.minhash import Finder
from nddup.spark.pairing import candidates, prefix_exchange
from nddup.spark.pairing.prefix_exchange import Pairing, gather_sketches, reply_rarity, request_rarity
from tests.counted_rows import once
from tests.matching.prepared_sketches import Sketch, ragged, resemblance
from tests.spark.simulated_tasks import find_pairs, move, rows_of, sketch_batches

SIZE = 12
ALL = LongLists(10_000, 0)
MEASURES = ("count", "share", "resemblance", "containment", "texts")
Pair = tuple[object, object, object]


def threshold_of(measure: str, part: int) -> Threshold:
    """Return the threshold of `part` twentieths, or of `part` features for a count; `texts` must reach a higher one."""
    if measure == "texts":
        exact = Fraction(min(part + 3, 20), 20)
        return Threshold("resemblance", part, 20, is_count=False, size=SIZE, by_text=True, exact=exact)
    is_count = measure == "count"
    name = "overlap" if measure in ("count", "share") else measure
    shows = measure == "containment"
    return Threshold(name, part, 1 if is_count else 20, is_count=is_count, size=SIZE, shows_containment=shows)


def is_near(a: Sketch, b: Sketch, threshold: Threshold) -> bool:
    """Return whether two sketches are near-duplicates, by the definition of the measure."""
    common, least = len(set(a) & set(b)), Fraction(threshold.numerator, threshold.denominator)
    if threshold.measure == "resemblance":
        needed = common_needed(len(a), len(b), threshold.rule)  # tests/matching/test_bounds_of_texts.py
        return common >= max(needed, 1) and resemblance(a, b, SIZE) >= least
    size = min(len(a), len(b)) if threshold.is_containment else max(len(a), len(b))
    return common > 0 and common >= (least if threshold.is_count else least * size)


def draw_sketches(seed: int, families: int) -> list[Sketch]:
    """Draw distinct sketches: families of changed and shortened copies, with ids on both sides of the sign bit."""
    random = np.random.default_rng(seed)
    places = random.integers(0, 2**64, int(random.integers(8, 90)), dtype=np.uint64)
    sketches = set()
    for _ in range(families):
        base = random.choice(len(places), random.integers(1, min(len(places), 2 * SIZE)), replace=False)
        for _ in range(random.integers(1, 7)):
            changed = np.where(random.random(len(base)) < 0.1, random.integers(0, len(places), len(base)), base)
            cut = changed[: random.integers((len(base) + 1) // 2, len(base) + 1)]
            sketches.add(tuple(sorted({int(places[i]) for i in cut})[:SIZE]))
    return sorted(sketches)


def near_pairs(sketches: list[Sketch], threshold: Threshold, finder: Finder | None = None) -> list[Pair]:
    """Return all near-duplicate pairs; with a finder, only those with a common key."""
    given = ragged(sketches)
    keys = [set()] * len(sketches) if finder is None else _key_sets(finder, given)
    return [
        (a, b, len(set(sketches[a]) & set(sketches[b])))
        for a, b in combinations(range(len(sketches)), 2)
        if is_near(sketches[a], sketches[b], threshold) and (finder is None or keys[a] & keys[b])
    ]


def _key_sets(finder: Finder, sketches: Ragged) -> list[set[int]]:
    offsets, values = finder.keys(sketches)
    return [set(values[low:high].tolist()) for low, high in pairwise(offsets)]


def found(sketches: list[Sketch], pairing: Pairing) -> tuple[list[Pair], list[tuple[object, object]]]:
    """Return the pairs with their overlaps, and the links."""
    compared, _ = find_pairs(ragged(sketches), pairing)
    pairs = [(row["node_a"], row["node_b"], row["overlap"]) for row in rows_of(compared, "pair")]
    return pairs, [(row["node_a"], row["node_b"]) for row in rows_of(compared, "link")]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    measure=st.sampled_from(MEASURES),
    part=st.integers(1, 19),
    division=st.builds(Division, st.integers(7, MOST_BITS), st.sampled_from([1, 2, 7])),
)
@example(seed=770, measure="texts", part=5, division=Division(7, 2))  # homes of short sketches, beside full ones
def test_pairs_are_those_of_comparing_all(seed: int, measure: str, part: int, division: Division) -> None:
    """Each near-duplicate pair is found once, even if most elements stand for several ids."""
    sketches, threshold = draw_sketches(seed, 6), threshold_of(measure, min(part, SIZE) if measure == "count" else part)

    pairs, links = found(sketches, Pairing(threshold, division, ALL))

    assert pairs == near_pairs(sketches, threshold)
    assert links == []


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 3), bits=st.integers(7, MOST_BITS))
def test_pairs_by_keys_have_one_in_common(seed: int, rows: int, bits: int) -> None:
    """Sketches that meet by keys are a pair only if they share a key, not just the element of one."""
    sketches, threshold, finder = draw_sketches(seed, 6), threshold_of("share", 10), Finder(0, rows)

    pairs, _ = found(sketches, Pairing(threshold, Division(bits, 3), ALL, finder=finder))

    assert pairs == near_pairs(sketches, threshold, finder)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 4), max_edges=st.integers(1, 12))
def test_pairs_that_are_not_listed_are_counted(seed: int, most: int, max_edges: int) -> None:
    """Components with too many pairs in a task are searched again, and known to be large if all their pairs are."""
    sketches, threshold = draw_sketches(seed, 6), threshold_of("resemblance", 8)
    expected = {(a, b) for a, b, _ in near_pairs(sketches, threshold)}

    compared, _ = find_pairs(ragged(sketches), Pairing(threshold, Division(36, 3), ALL, most_listed=most))
    rows = [row for what in ("pair", "many") for row in rows_of(compared, what)]
    counts = [row["overlap"] if row["what"] == "many" else 1 for row in rows]
    ends = {name: [row[name] for row in rows] for name in ("node_a", "node_b")}
    connections = pa.RecordBatch.from_pydict(
        {name: pa.array(nodes, pa.int64()) for name, nodes in ends.items()}
        | {"is_link": pa.array([False] * len(rows), pa.bool_()), "pairs": pa.array(counts, pa.int64())}
    )
    families = [row for batch in list_families(iter([connections]), max_edges=max_edges) for row in batch.to_pylist()]

    known = {row["node"]: (row["family"], row["is_large"]) for row in families}
    listed = once((row["node_a"], row["node_b"]) for row in rows_of(compared, "pair"))
    assert {(a, b) for a, b in expected if a not in known} == {(a, b) for a, b in listed if a not in known}
    assert all(known.get(a) == known.get(b) for a, b in expected)
    for number, is_large in set(known.values()):
        pairs = sum(known.get(a) == (number, is_large) for a, _ in expected)
        assert is_large == (pairs > max_edges)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 5), part=st.integers(4, 16))
def test_no_pair_leaves_a_family_of_links(seed: int, most: int, part: int) -> None:
    """If lists are too long, each pair is found, or its two sketches are connected by links."""
    sketches, threshold = draw_sketches(seed, 6), threshold_of("resemblance", part)

    pairs, links = found(sketches, Pairing(threshold, Division(36, 3), LongLists(most, 0), links=True))

    expected = near_pairs(sketches, threshold)
    family = dict.fromkeys(range(len(sketches)), 0) | {node: node for node in range(len(sketches))}
    for _ in sketches:
        for a, b in links:
            family[a] = family[b] = min(family[a], family[b])  # type: ignore[index]
    assert set(pairs) <= set(expected)
    assert all(family[a] == family[b] for a, b, _ in set(expected) - set(pairs))  # type: ignore[index]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), measure=st.sampled_from(MEASURES), most=st.integers(1, 40))
def test_the_sketches_wanted_are_those_of_candidates(seed: int, measure: str, most: int) -> None:
    """A task fetches a sketch if and only if it is in a candidate pair of that task."""
    sketches, threshold = draw_sketches(seed, 6), threshold_of(measure, 8)
    pairing = Pairing(threshold, divide(10**6, 2), LongLists(most, 0), links=True)
    held, _ = move(gather_sketches(sketch_batches(ragged(sketches)), pairing=pairing))
    asked, _ = move(batch for blocks in held.values() for batch in request_rarity(blocks, pairing=pairing))
    replies, _ = move(batch for blocks in asked.values() for batch in reply_rarity(blocks, pairing=pairing))
    posted, _ = move(
        batch
        for target in held
        for batch in prefix_exchange.post_prefixes(held[target], replies.get(target, []), pairing=pairing)
    )

    for blocks in posted.values():
        _, met = candidates._read_postings(blocks, pairing)  # noqa: SLF001
        wanted = element_join.find_wanted(met, pairing.candidate_rule, threshold.rule)
        lists, _ = element_join._make_lists(met, pairing.candidate_rule, is_containment=threshold.is_containment)  # noqa: SLF001
        search = element_join._begin(met, lists, pairing.candidate_rule, threshold.rule)  # noqa: SLF001
        expected = set()
        for number in range(len(met.sizes)):
            count = element_join._list_candidates(search, number)  # noqa: SLF001
            expected |= {number, *search.candidates[:count].tolist()} if count else set()
        assert set(np.flatnonzero(wanted).tolist()) == expected


@pytest.mark.parametrize("links", [False, True])
def test_no_result_depends_on_the_partitions(links: bool) -> None:  # noqa: FBT001 - pytest
    """1, 7, 64 and 2,000 tasks find the same pairs; without links they compare long lists in full."""
    sketches, threshold = draw_sketches(5, 60), threshold_of("containment" if not links else "share", 13)

    answers = []
    for partitions in (1, 7, 64, 2_000):
        long_lists = LongLists(40, 0) if links else LongLists(4, 10**6)
        pairing = Pairing(threshold, divide(10**6, partitions), long_lists, links=links)
        answers.append(found(sketches, pairing)[0])

    assert len(answers[0]) > 50
    assert all(answer == answers[0] for answer in answers[1:])
    assert links or answers[0] == near_pairs(sketches, threshold)


@pytest.mark.parametrize("partitions", [1, 64])
def test_a_list_that_costs_too_much_is_told(partitions: int) -> None:
    """The task of a list that costs too much compares nothing, and reports its length to the driver."""
    sketches, threshold = draw_sketches(5, 60), threshold_of("containment", 13)

    compared, _ = find_pairs(ragged(sketches), Pairing(threshold, divide(10**6, partitions), LongLists(4, 1)))

    counted = rows_of(compared, "count")
    assert max(int(str(row["stopped"])) for row in counted) > 4
    assert len(rows_of(compared, "pair")) < len(near_pairs(sketches, threshold))


def test_small_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that asks for its elements in small pieces assigns every reply to its piece."""
    sketches, threshold = draw_sketches(3, 20), threshold_of("resemblance", 12)
    monkeypatch.setattr(prefix_exchange, "piece_ids", lambda _free, _partitions: 40)
    monkeypatch.setattr(prefix_exchange, "batch_bytes", lambda _free, _partitions: 8)

    assert found(sketches, Pairing(threshold, Division(36, 3), ALL))[0] == near_pairs(sketches, threshold)


def test_a_reply_too_short_or_too_long_is_no_reply() -> None:
    """Replies match questions by position, so a reply with fewer or more bytes than were asked for is refused."""
    pairing = Pairing(threshold_of("resemblance", 12), Division(36, 3), ALL)
    kept, _ = move(gather_sketches(sketch_batches(ragged(draw_sketches(3, 20))), pairing=pairing))
    requests, _ = move(batch for blocks in kept.values() for batch in request_rarity(blocks, pairing=pairing))
    answered = {
        owner: [batch.filter(pa.compute.equal(batch["target"], 0)) for batch in reply_rarity(blocks, pairing=pairing)]
        for owner, blocks in requests.items()
    }

    def read(lists: list[list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        replies = [batch for batches in lists for batch in batches]
        return list(prefix_exchange.post_prefixes(kept[0], replies, pairing=pairing))

    assert read(list(answered.values()))
    with pytest.raises(ValueError, match="task 2 returned fewer"):
        read([answered[0], answered[1]])

    [whole] = answered[2]
    longer = whole.set_column(1, "classes", pa.array([whole["classes"][0].as_py() + b"\0"]))
    with pytest.raises(ValueError, match="more counts than"):
        read([answered[0], answered[1], [longer]])


def test_a_frequent_element_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that all sketches hold costs one request per piece, with the number of its occurrences."""
    sketches, threshold = draw_sketches(3, 20), threshold_of("resemblance", 12)
    monkeypatch.setattr(elements, "FREQUENT", 1)
    asked = found(sketches, Pairing(threshold, Division(36, 3), ALL))[0]
    assert asked == near_pairs(sketches, threshold)

    monkeypatch.undo()
    random = np.random.default_rng(2)
    ids = random.integers(1, 1 << 64, (4_000, 50), np.uint64)
    ids[:, 0] = 7
    rows = Ragged(np.arange(4_001) * 50, np.sort(ids, axis=1).ravel())
    pairing = Pairing(threshold, divide(200_000, 100), ALL)
    kept, _ = move(gather_sketches(sketch_batches(rows), pairing=pairing))
    tasks, _ = move(batch for blocks in kept.values() for batch in request_rarity(blocks, pairing=pairing))

    sizes = [sum(len(cell.as_py()) for batch in blocks for cell in batch["rest"]) for blocks in tasks.values()]
    assert len(sizes) == 100
    assert max(sizes) < 1.2 * sum(sizes) / len(sizes)


def test_bytes_do_not_grow_with_the_partitions() -> None:
    """The bytes sent per sketch are about the same for 16 and 600 tasks; only sketches with a candidate are sent."""
    random = np.random.default_rng(1)
    ids = random.integers(0, 1 << 64, (600, 200), np.uint64)
    ids[1:120:2, :180] = ids[:120:2, :180]  # near-duplicates of 60 sketches
    rows = Ragged(np.arange(601) * 200, np.sort(ids, axis=1).ravel())
    threshold = Threshold("resemblance", 8, 10, is_count=False, size=200)

    few, many = (
        find_pairs(rows, Pairing(threshold, divide(120_000, tasks), ALL, most_ids=200))[1] for tasks in (16, 600)
    )

    assert sum(many.values()) < 1.1 * sum(few.values()) < 1.1 * 3_400 * 600
    assert many["sent"] == few["sent"] == 120 * (16 + 8 * 200)
