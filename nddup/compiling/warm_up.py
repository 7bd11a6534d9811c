"""Warm up the kernels: the common ones before workers fork, all of them at installation."""

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from nddup.against.find_hits import find_hits, find_possible
from nddup.against.judge import Holders, Rules, judge
from nddup.against.share_records import number_items
from nddup.against.shingle_table import make_filter, make_known, open_known
from nddup.against.spans import find_runs
from nddup.embedded import steps as engine
from nddup.embedded.confirm import Known as KnownPairs
from nddup.embedded.confirm import keys_of
from nddup.embedded.match import PairingOptions, match
from nddup.embedded.read_records import number_texts
from nddup.embedded.workers import Workers
from nddup.ground.arrays import Ragged, number_keys, take_rows
from nddup.matching.bitmaps import pack
from nddup.matching.confirm_texts import bound_common
from nddup.matching.elements import take_all
from nddup.matching.lookups import Matching, build_postings, hash_ids, hash_strings
from nddup.matching.lookups import Rows as Stored
from nddup.matching.lookups import find_near as find_stored
from nddup.matching.overlap_join import ComparisonLimits
from nddup.matching.reach import mark_new, marks_of
from nddup.matching.sift import sift
from nddup.matching.threshold import Threshold
from nddup.mining.family_join import Side, join_family
from nddup.mining.family_pairs import pair_family
from nddup.mining.fimi import read_fimi
from nddup.mining.frequent_sets import mine_context
from nddup.mining.itemsets import cover_component, mine_component
from nddup.mining.leader_clusters import Known, follow_leaders
from nddup.mining.leaders import begin_index
from nddup.mining.pair_graph import NamedChoice, keep_first, label_components
from nddup.passages import divided
from nddup.passages.repeats import find_repeats
from nddup.passages.tabulate import find_characters
from nddup.reading import markup, page_limits
from nddup.reading.json_lines import Keys, find_ends, read_lines
from nddup.reading.json_spread import as_lines
from nddup.scanning import read_again, sketch_records
from nddup.scanning.found import text_buffers
from nddup.settings.load import build_config
from nddup.sketching import min_s, minhash, recipe
from nddup.sketching.rolling_hash import hash_rows, unknown_bytes
from nddup.sketching.vocabulary import LexiconRule, TermCounts, grow_table
from nddup.sketching.word_sketches import WordRule, WordSketcher
from nddup.verifying.cluster_proofs import Members, find_extensions, label_parts, prepare_sets, prove_clusters
from nddup.verifying.definitions import USED, Definition, Rows, Sample, compare_all, estimate_pairs
from nddup.verifying.near_pairs import Probes as Checked
from nddup.verifying.near_pairs import count_common, find_near
from nddup.verifying.pair_counts import count_pairs

__all__ = ["call_kernels", "load_kernels", "read_again", "sketch_records"]


def call_kernels() -> None:
    """Call every kernel once, those of rare paths too: quick if they are compiled already."""
    _match_sketches()
    _sketch_texts()
    _read_pages()
    _read_json()
    _mine_as_usual()
    _run_as_usual()
    _mine_sketches()
    _run_embedded()
    _sketch_and_pair()
    _compare_collections()
    _cluster_around_leaders()
    _look_up()
    _check_results()


def load_kernels() -> None:
    """Call each kernel of the usual path once, on tiny inputs of the types that the stages use."""
    _sketch_texts()
    _read_pages()
    _read_json()
    take_rows(_sketches(), np.array([1, 0]))
    _run_tasks()
    edge = np.array([[0, 1]], np.int32)
    label_components(edge, nodes=2)
    keep_first(edge, np.ones(1), np.arange(2, dtype=np.int32))
    offsets, ids = _sketches()
    mine_component(offsets, ids.view(np.int64), np.ones(2, np.int32), edge, max_sets=9, max_members=9)


def _sketch_texts() -> None:
    text = np.frombuffer(b"a rose is a rose", np.uint8)
    bounds = np.array([0, len(text)], np.int64)
    min_s.sketch_texts(text, bounds)
    unknown_bytes(text, bounds)


def _read_pages() -> None:
    markup.strip_markup("<p>")
    page_limits.trace_elements(np.frombuffer(b"<p>", np.uint8))


def _read_json() -> None:
    line = np.frombuffer(as_lines(b'[{"title": "a", "text": "b"}]\n'), np.uint8)
    read_lines(line, find_ends(line), Keys("text", titles=("title",)), line.size).join("\n")


def _mine_as_usual() -> None:
    """Call the kernels of components in which not every two documents are alike."""
    sketches = _sketches()
    edge, supports = np.array([[0, 1]], np.int32), np.ones(2, np.int32)
    mine_component(sketches.offsets, sketches.values.view(np.int64), supports, edge, max_sets=9, max_members=9)
    number_keys(sketches.values)


def _match_sketches() -> None:
    nodes = np.arange(2, dtype=np.int32)
    with Workers(1) as workers:
        options = PairingOptions.of(build_config({}, origin="kernels"))
        match(nodes, _sketches(), np.full(2, 3, np.int32), options, workers)
    pack(np.array([0, 1, 2]), np.zeros(2, np.int32), np.arange(2), 0, 1)  # where very many sketches meet


def _run_as_usual() -> None:
    with Workers(1) as workers:
        _run_texts({}, workers)


def _sketches() -> Ragged:
    return Ragged(np.array([0, 3, 6], np.int64), np.array([1, 2, 3, 1, 2, 3], np.uint64))


def _cluster_around_leaders() -> None:
    sketches, ones, edge = _sketches(), np.ones(2, np.int32), np.array([[0, 1]], np.int32)
    for threshold in (Threshold("overlap", 2, 1, True, 3), Threshold("resemblance", 1, 2, False, 3)):  # noqa: FBT003
        known = Known(edge, np.arange(2, dtype=np.int32), np.array([True, False]), is_whole=False)
        follow_leaders(sketches, ones, known, threshold.rule)
        pair_family(sketches, ones, np.array([0, 1]), threshold, ComparisonLimits(0, 9))
        texts = KnownPairs(keys_of(edge), ones, np.ones(2)).of_family(np.arange(2))
        join_family(Side(sketches, np.full(2, 3, np.int32), threshold), ComparisonLimits(0, 9), None, texts)
    begin_index(3)


def _mine_sketches() -> None:
    """Call the kernels of components, keep-list and clusters, and of every miner."""
    sketches, ones, edge = _sketches(), np.ones(2, np.int32), np.array([[0, 1]], np.int32)
    components = (sketches.offsets, sketches.values.view(np.int64), ones, edge)
    mine_component(*components, max_sets=9, max_members=9)
    cover_component(*components)
    NamedChoice().feed(np.arange(99), np.arange(99))

    context, _ = read_fimi([b"1 2\n1 2\n"])
    for closed in (False, True):
        mine_context(context, 2, closed=closed)


def _sketch_and_pair() -> None:
    """Call the kernels of the usual path, and those that only some settings of reading, sketching and pairing need."""
    load_kernels()
    sift(_sketches(), np.arange(2), np.full(2, 3, np.int32), map, 1)
    text, sizes = np.frombuffer(b"a rose is a rose", np.uint8), np.array([0, 16], np.int64)
    for permutation in ("mix", "gf2", "affine", "datasketch"):
        recipe.make_sketches(text, sizes, recipe.Recipe("minhash", size=2, permutation=permutation))
    for permutation in ("gf2", "affine"):
        recipe.make_sketches(
            text, sizes, recipe.Recipe(unit="char", fingerprint="rabin", permutation=permutation, growth="linear")
        )
    rule = LexiconRule(("english",), stems=True, stops=True, low="0", high="1")
    TermCounts(rule).add(text, sizes)
    sketches = _sketches()
    WordSketcher(WordRule("i-match", rule), sketches.values).sketch(text, sizes)
    page_limits.count_parts(b"<p>", is_xml=False)
    grow_table(np.zeros(2, np.uint64), np.full(2, -1, np.int32))
    for finder in (minhash.Finder(1, 2), minhash.Finder(0, 2)):
        finder.keys(sketches)
    recipe.spread_levels(np.array([1]), np.array([0]), Ragged(sketches.offsets[:2], sketches.values[:3]), 1)


def _check_results() -> None:
    """Call the kernels of `nddup check`, in memory and in Spark's tasks."""
    offsets, ids = _sketches()
    count_pairs(np.array([0, 0, 1]), np.array([0, 1, 1]))
    compare_all(offsets, ids, np.array([0]), offsets, ids, np.array([1]), Sample(3), np.zeros(1, np.uint64))
    lists = pa.array([[1, 2], None], pa.list_(pa.int64()))
    columns = {name: lists if name.startswith("sketch") else pa.array([2, None], pa.int32()) for name in USED}
    list(estimate_pairs(iter([pa.record_batch(columns)]), sample=Sample(3), levelled=0))

    rows = Rows(offsets, ids)
    rule = Definition(1, 2, is_count=False, is_resemblance=True, sample=Sample(3))
    places = np.array([0, 1], np.int64)
    find_near(rows, Checked(rows), rule, places)
    count_common(rows.offsets, rows.ids.copy(), places, places)
    members = Members(np.array([0, 2], np.int64), places)
    proved = prove_clusters(rows, members, rule)
    find_extensions(rows, places, places, prepare_sets(rows, members, proved.joints, proved.bounds), rule)
    label_parts(places, places, 2)


def _compare_collections() -> None:
    """Call the kernels of `nddup against`."""
    text, bounds = text_buffers(["a rose is a rose"])
    known = make_known(text, bounds, 2)
    hits = find_hits(text, bounds, known, counts=True)
    find_possible(text, bounds, make_filter(np.ones(1, np.uint64)), 2)
    with TemporaryDirectory() as folder:
        known.save(Path(folder))
        find_hits(text, bounds, open_known(folder))
    one, groups = np.zeros(1, np.int64), np.zeros(1, np.int64)
    holders = Holders(hits.offsets, hits.numbers, np.zeros((1, 2), np.uint64), hits.n_shingles, one, groups)
    judged = judge(number_items([known]), holders, Rules(min_shingles=1))
    find_runs(known.numbers, hits.tokens, hits.numbers, judged.is_suppressed)
    _find_passages(hash_rows(text, bounds))
    find_characters([b"a rose"], np.array([0, 1], np.int64), one, one + 1)


def _find_passages(rows: Ragged) -> None:
    """Call the kernels of `nddup passages`, in one memory and divided among tasks; `rows`: one text."""
    ranks = np.zeros(1, np.int64)
    find_repeats(rows, ranks, 2)
    posted = divided.post_anchors(rows, ranks, 2)
    asked = np.arange(len(posted.posts.keys))
    details = divided.describe_windows(rows, posted, asked, 2)
    verdicts = divided.judge_windows(posted.posts, asked, details, within=True)
    divided.place_windows(rows, ranks, posted, verdicts)


def _look_up() -> None:
    """Call the kernels of a repository."""
    hash_strings(pa.array(["a"]))
    given = Stored(np.arange(2), _sketches(), np.full(2, 3, np.int32))
    for measure, finder in (("containment", None), ("resemblance", minhash.Finder(1, 2))):
        matching = Matching(Threshold(measure, 1, 2, is_count=False, size=3), finder, levels=0)
        postings = build_postings(given._replace(names=np.arange(2), sketches=_sketches()), matching)
        hash_ids(postings.rows.sketches.values)
        find_stored(postings, given, matching)


def _run_embedded() -> None:
    """Run the embedded engine over a few texts."""
    with Workers(1) as workers:
        chosen: list[tuple[str, Any]] = [("clusters.mode", "cover"), ("pairs.max_edges", 1)]
        chosen += [("sketch.kind", "minhash"), ("sketch.kind", "super")]
        chosen += [("pairs.confirm", "none"), ("pairs.confirm", "edit"), ("pairs.confirm", "resemblance")]
        for key, value in chosen:
            section, _, name = key.partition(".")
            settings: dict[str, dict[str, Any]] = {"pairs": {"threshold": 0.5}}
            settings.setdefault(section, {})[name] = value
            _run_texts(settings, workers)
    bound_common(np.arange(9, dtype=np.uint64), np.arange(9, dtype=np.uint64)[::-1], 0)  # of long texts only


def _run_texts(settings: dict[str, dict[str, Any]], workers: Workers) -> None:
    words = [f"w{number}" for number in range(60)]
    texts = [" ".join([*words[:cut], "edit", *words[cut:]]) for cut in range(6)]
    given = number_texts(pa.table({"id": list("abcdef"), "text": texts}), id="id", text="text")
    config = build_config(settings, origin="kernels")
    paired = engine.pair(engine.sketch(given, config, workers).documents, config, workers, given)
    engine.keep(paired, engine.cluster(paired, config, workers), config)


def _run_tasks() -> None:
    """Call the kernels as tasks of Spark do, where it is installed; call what only large data do."""
    if find_spec("pyspark") is not None:
        from nddup.compiling.spark_tasks import run_tasks  # noqa: PLC0415 - an installation may lack Spark

        run_tasks(_sketches())
    take_all(_sketches(), _sketches(), np.ones(2, np.int32))
    new = np.full(2, 3, np.int32)
    reach = mark_new(_sketches(), new, Threshold("resemblance", 1, 2, is_count=False, size=3), None)
    marks_of(_sketches(), len(reach.words), None)
    reach.find(_sketches(), new)
