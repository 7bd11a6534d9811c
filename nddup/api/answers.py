"""What a run answers beyond its tables: why a pair is one, the run at another threshold, its signatures as objects.

    explain_pair   two documents        -> PairVerdict: why they are, or are not, near-duplicates
    measure        two sketches         -> Measured, by the rule of the run
    make_again     documents, threshold -> Rethresholded: the run at another threshold, from its documents alone
    minhash_of     a document           -> its signature as an object of datasketch
    fill_lsh       documents            -> an index of datasketch, for programs that serve look-ups with it

datasketch is imported only when its objects are asked for: it loads slowly, and nothing else needs it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from nddup.api import views
from nddup.embedded.memory import Memory
from nddup.embedded.run import LocalJob
from nddup.embedded.run_steps import SketchedHere
from nddup.embedded.workers import Workers
from nddup.engines.choose import memory_of
from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError
from nddup.ground.arrays import Ragged
from nddup.ground.metrics import RunMetrics
from nddup.ground.progress import Progress
from nddup.matching.measures import MEASURES
from nddup.matching.threshold import Threshold, compare_sketches, overlap_or_less, resemblance_parts
from nddup.mining.keep_verdicts import FORCED_NOTE, Forced
from nddup.report.for_review import side_by_side
from nddup.settings import plan
from nddup.settings.load import read_stored
from nddup.settings.plan import processes_of
from nddup.settings.schema import Config
from nddup.sketching.accuracy import sampled_variance, slots_variance, smallest_variance
from nddup.sketching.recipe import level_of
from nddup.stages.inputs_found import read_forced
from nddup.stages.run import decide
from nddup.stages.run_engine import Made, Saved
from nddup.stages.stage import metrics_of
from nddup.storage.local_folder import MemoryTables
from nddup.storage.local_storage import LocalStorage
from nddup.tables import DOCUMENTS, REJECTS

BOTH = """
    SELECT d.doc_id, d.group, d.sketch, d.n_features, g.n_features AS level_features, k.kept, k.leader, k.duplicate_of
    FROM documents AS d JOIN wanted AS w ON d.doc_id = w.id JOIN documents AS g ON d.group = g.doc_id
    LEFT JOIN keep AS k ON d.doc_id = k.doc_id
"""
ROWS = """
    SELECT p.doc_a, p.doc_b, p.star, p.edit, p.resemblance FROM pairs AS p
    JOIN wanted AS a ON p.doc_a = a.id JOIN wanted AS b ON p.doc_b = b.id
"""
LED = """
    SELECT c.component, m.doc_id FROM clusters AS c JOIN members AS m ON c.cluster_id = m.cluster_id
    JOIN wanted AS w ON m.doc_id = w.id WHERE c.coverage = 'documents'
"""
TEXTS = "SELECT t.doc_id, t.text FROM texts AS t JOIN wanted AS w ON t.doc_id = w.id"
"""Stored texts of the documents in wanted(id). LED: the components of these documents that are given by leaders."""


CLOSE = 2
"""Distance from the threshold, in standard errors, up to which a verdict is a close call."""


class Measured(NamedTuple):
    """Result of comparing two sketches by the rule of the run.

    `sizes` and `common` count features, `shared / united` is the estimated resemblance, `need` the least `common` of a
    near-duplicate pair of these sizes, and `is_near` says whether the pair reaches the threshold.
    """

    sizes: tuple[int, int]
    common: int
    shared: int
    united: int
    need: int
    is_near: bool


@dataclass(frozen=True)
class PairVerdict:
    """Two documents, compared.

    Attributes:
        doc_a: the smaller id, compared as bytes.
        doc_b: the larger id.
        is_pair: whether they are near-duplicates in the run: a row of `pairs`, or rows of a star that stand for it.
        verdict: the decision and its reason, in a sentence.
        measure: measure that the threshold applies to.
        threshold: a share, or a count of features.
        value: measured value, compared with the threshold: resemblance, overlap as a share or count, or containment.
            Where all shingles decide, the estimate of the sketches if the pair is not in the run.
        common: number of features in both sketches; in kinds with a modulus per document, at the coarser modulus.
        features_a: number of features in the sketch of a, at the same modulus.
        features_b: number of features in the sketch of b, at the same modulus.
        needed: the least `common` with which two sketches of these sizes can be near-duplicates.
        resemblance: exact, of all shingles, where the run decided by these and has the pair; else `estimate`.
        estimate: of the resemblance, from the sketches; None if both are empty.
        standard_error: standard error of `value`; None if the measure is the overlap itself, the kind draws no random
            sample, or a sketch is empty. Near a resemblance of 0 or 1, the formula gives too small an error.
        texts: the two texts that the run stored for the report; None unless it stored both.
    """

    doc_a: str
    doc_b: str
    is_pair: bool
    verdict: str
    measure: str
    threshold: float
    value: float
    common: int
    features_a: int
    features_b: int
    needed: int
    resemblance: float | None
    standard_error: float | None
    estimate: float | None = None
    texts: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """Return the verdict."""
        return self.verdict

    def _repr_html_(self) -> str:
        values = {
            self.measure: self.value, "threshold": self.threshold, "standard error": self.standard_error,
            "features in common": self.common, "needed at least": self.needed, "features of a": self.features_a,
            "features of b": self.features_b, "resemblance": self.resemblance,
        }  # fmt: skip
        page = views.facts(f"{self.doc_a} and {self.doc_b}", values, sentence=self.verdict)
        if self.texts is None:
            return page + "<p>The run did not store both texts (output.texts).</p>"
        return page + side_by_side((self.doc_a, self.doc_b), self.texts)


SCHEME = "affine64"
"""datasketch's name for the permutations that kind `minhash` uses by default."""


def explain_pair(run: FinishedRun, config: Config, first: str, second: str) -> PairVerdict:
    """Say why two documents are, or are not, near-duplicates.

    The numbers of a pair are recomputed from the two stored sketches by the rule of the run; the tables then say what
    the run decided about it.

    Raises:
        ConfigError: if an id is not a document of the run, or both are the same.

    Cost: a pass over the ids of `documents` and `pairs`; two sketches are read.
    """
    if first == second:
        raise ConfigError(f"explain_pair: expected two documents, got {first!r} twice")
    wanted = pa.table({"id": pa.array([first, second], pa.string())})
    rows = {row["doc_id"]: row for row in run.sql(BOTH, wanted=wanted).to_pylist()}
    for name in (first, second):
        if name not in rows:
            raise ConfigError(f"explain_pair: {name!r} is no document of {run.path}")
    a, b = (rows[name] for name in sorted((first, second), key=str.encode))

    sketches = [np.array(row["sketch"] or [], np.int64).view(np.uint64) for row in (a, b)]
    levels = plan.levels_of(config)
    level = max(level_of(row["level_features"], levels) for row in (a, b)) if levels else 0
    mask = np.uint64((1 << level) - 1)
    sketches = [sketch[sketch & mask == 0] for sketch in sketches]

    threshold = plan.threshold_of(config)
    measured = measure(sketches, threshold)
    value = _value_of(measured, threshold)
    bound = threshold.numerator / threshold.denominator
    error = _standard_error(config, measured, value, (a["n_features"], b["n_features"]), level)
    is_pair, reason, exact = _judge(run, config, (a, b), sketches, measured)
    estimate = measured.shared / measured.united if measured.united else None
    is_exact = config.pairs.confirm == "resemblance"
    if is_exact:  # the estimate only makes a candidate
        error = None
        value, bound = value if exact is None else exact, float(config.pairs.share)
    if error and abs(value - bound) <= CLOSE * error:
        reason += f"; a close call, the standard error of the estimate is {error:.3f}"
    return PairVerdict(
        doc_a=a["doc_id"],
        doc_b=b["doc_id"],
        is_pair=is_pair,
        verdict=f"{'Near-duplicates' if is_pair else 'No near-duplicates'}: {reason}.",
        measure=threshold.measure,
        threshold=bound,
        value=value,
        common=measured.common,
        features_a=measured.sizes[0],
        features_b=measured.sizes[1],
        needed=measured.need,
        resemblance=exact if is_exact and exact is not None else estimate,
        standard_error=error,
        estimate=estimate,
        texts=_stored_texts(run, a["doc_id"], b["doc_id"]),
    )


def _stored_texts(run: FinishedRun, a: str, b: str) -> tuple[str, str] | None:
    if not run.holds("texts"):
        return None
    wanted = pa.table({"id": pa.array([a, b], pa.string())})
    texts = {row["doc_id"]: row["text"] for row in run.sql(TEXTS, wanted=wanted).to_pylist()}
    return (texts[a], texts[b]) if len(texts) == len((a, b)) else None


def measure(sketches: list[NDArray[np.uint64]], threshold: Threshold) -> Measured:
    """Compare two sketches, each of ascending ids, by the threshold's rule."""
    sizes = (len(sketches[0]), len(sketches[1]))
    ids, middle, end = np.concatenate(sketches), sizes[0], sum(sizes)
    bounds = threshold.bounds(np.array(sizes, np.int32))
    need = int(bounds.min() if threshold.is_containment else bounds.max())
    rows = Ragged(np.array([0, middle, end], np.int64), ids)

    common = int(overlap_or_less(ids, 0, middle, middle, end, 0))
    shared, united = resemblance_parts(ids, 0, middle, middle, end, threshold.rule)
    is_near = compare_sketches(rows, 0, 1, need, threshold.rule)[0] >= need
    return Measured(sizes, common, int(shared), int(united), need, bool(is_near))


def _value_of(measured: Measured, threshold: Threshold) -> float:
    if threshold.is_count:
        return measured.common
    if MEASURES[threshold.measure].is_estimated:
        return measured.shared / measured.united if measured.united else 0.0
    size = min(measured.sizes) if threshold.is_containment else max(measured.sizes)
    return measured.common / size if size else 0.0


def _judge(
    run: FinishedRun,
    config: Config,
    rows: tuple[dict[str, Any], dict[str, Any]],
    sketches: list[NDArray[np.uint64]],
    measured: Measured,
) -> tuple[bool, str, float | None]:
    a, b = rows
    names = pa.table({"id": pa.array(sorted({a["doc_id"], b["doc_id"], a["group"], b["group"]}), pa.string())})
    there = {frozenset((row["doc_a"], row["doc_b"])): row for row in run.sql(ROWS, wanted=names).to_pylist()}
    pair, groups = frozenset((a["doc_id"], b["doc_id"])), frozenset((a["group"], b["group"]))
    is_equal = len(groups) == 1
    stored, exact = there.get(pair, there.get(groups)), 1.0 if is_equal else None
    of_equal = f"their {'texts' if config.pairs.confirm == 'resemblance' else 'sketches'} are equal"
    compared = of_equal if is_equal else _compared(measured, config)
    if stored:
        compared, exact = _confirmed(stored, compared, config), stored["resemblance"]
    if pair in there:
        return True, compared, exact
    if is_equal and measured.sizes[0] >= plan.threshold_of(config).least_size:
        return True, f"{compared}; the pairs of their group are given by a star around {a['group']}", exact
    if there.get(groups, {}).get("star"):
        hubs = " and ".join(sorted(groups))
        text = f"{compared}; the pairs of their groups of equal sketches are given by the star of {hubs}"
        return True, text, exact
    return False, compared + _why_missing(run, config, rows, sketches, measured), None


def _confirmed(row: dict[str, Any], compared: str, config: Config) -> str:
    if config.pairs.confirm == "resemblance":
        sentence = f"the resemblance of all their shingles {row['resemblance']:.4g} reaches {config.pairs.threshold:g}"
        return f"{sentence} ({compared})" if row["resemblance"] < 1 else sentence
    if config.pairs.confirm == "edit":
        sentence = f"the edit similarity of their texts {row['edit']:.4g} reaches {config.pairs.edit_threshold:g}"
        return f"{sentence}; {compared}"
    return compared


def _why_missing(
    run: FinishedRun,
    config: Config,
    documents: tuple[dict[str, Any], dict[str, Any]],
    sketches: list[NDArray[np.uint64]],
    measured: Measured,
) -> str:
    """Say why a pair is missing from the tables; an empty string if its numbers already say it."""
    finder = plan.finder_of(config)
    if finder is not None and all(measured.sizes):
        rows = (Ragged(np.array([0, len(sketch)], np.int64), sketch) for sketch in sketches)
        first, second = (finder.keys(row).values for row in rows)
        if not np.intersect1d(first, second).size:
            what = f"band of {finder.rows} slots" if finder.bands else f"run of {finder.rows} ids"
            return f"; the run did not compare them: they have no {what} in common"
    if not measured.is_near:
        return ""

    both = pa.table({"id": pa.array([row["doc_id"] for row in documents], pa.string())})
    led = {row["doc_id"]: row["component"] for row in run.sql(LED, wanted=both).to_pylist()}
    is_led = len(led) == len(documents) or run.metrics.stages.clusters.led_components > 0
    if is_led and not any(row["kept"] if row["leader"] is None else row["leader"] for row in documents):
        return (
            "; but neither leads in a component of more pairs than pairs.max_edges, which is given by leaders:"
            " only pairs of leaders are listed there"
        )
    if config.pairs.confirm == "edit":
        return f"; but the edit similarity of their texts is below pairs.edit_threshold {config.pairs.edit_threshold:g}"
    if config.pairs.confirm == "resemblance":
        return f"; but the resemblance of all their shingles is below pairs.threshold {config.pairs.threshold:g}"
    return "; but the run does not list it: `nddup check` recounts the pairs"


def _compared(measured: Measured, config: Config) -> str:
    threshold = plan.threshold_of(config)
    if not all(measured.sizes):
        return "an empty sketch is in no pair"
    if config.pairs.confirm == "resemblance":
        estimate = f"the sketches estimate {_value_of(measured, threshold):.4g}"
        if measured.is_near:
            return estimate
        return f"{estimate}, too far below the threshold {config.pairs.threshold:g} for their texts to be compared"
    if threshold.is_count:
        sign = "at least" if measured.common >= threshold.numerator else "fewer than"
        return f"{measured.common} features in common, {sign} the {threshold.numerator} that are asked for"
    share, bound = _value_of(measured, threshold), threshold.numerator / threshold.denominator
    sign = "reaches" if measured.is_near else "is below"
    return f"{MEASURES[threshold.measure].words} {share:.4g} {sign} the threshold {bound:g}"


def _standard_error(
    config: Config, measured: Measured, value: float, features: tuple[int, int], level: int
) -> float | None:
    sketch, kind, asked = config.sketch, plan.kind_of(config.sketch), plan.threshold_of(config).measure
    if MEASURES[asked].takes_count or kind.is_of_words or not all(measured.sizes):
        return None
    if kind.by_slots:
        return sqrt(slots_variance(value, slots=sketch.size))

    # The union of both documents: |A| + |B| = |A or B| (1 + r).
    united = max(round(sum(features) / (1 + value)), 1)
    if kind.estimate == "smallest":
        if max(measured.sizes) < sketch.size:
            return 0.0
        return sqrt(smallest_variance(value, size=sketch.size, united=united))
    if kind.name not in {"mod-m", "mod-pow2"}:
        return None
    modulus = 1 << level if kind.name == "mod-pow2" else sketch.modulus or plan.MODULUS
    among = max(min(features), 1) if MEASURES[asked].is_directed else united
    return sqrt(sampled_variance(value, modulus=modulus, among=among))


class Rethresholded(NamedTuple):
    """The tables of the recomputed run by name, and its metrics."""

    tables: Mapping[str, pa.Table]
    metrics: RunMetrics


def make_again(  # noqa: PLR0913 - the parts of a run
    documents: pa.Table,
    rejects: pa.Table,
    metrics: RunMetrics,
    threshold: float,
    pairs: pa.Table | None = None,
    *,
    forced: Forced | None = None,
) -> Rethresholded:
    """Recompute the tables of a run with another `pairs.threshold`.

    The stored sketches and signatures do not depend on the threshold. The embedded engine recomputes everything after
    them: pairs, stars, candidates of bands, components given by leaders, clusters, keep-list. So the tables equal those
    of a fresh run, also for a threshold below the run's own.

    Args:
        documents: DOCUMENTS of the run, in any order.
        threshold: a share such as `0.9`, or a count such as `180`, as in `pairs.threshold`.
        pairs: PAIRS of the run, where the resemblance of all shingles decided them.
        forced: the documents of `keep.force`, as `forced_of` gives them.

    Returns:
        All tables except `texts`, and the new metrics.

    Raises:
        ConfigError: if the measure of the run does not take such a threshold, or texts would have to be compared again.
        NeedsSparkError: if it needs more than `local.memory`.

    Cost: that of a run after reading and sketching.
    """
    settings = {**metrics.settings, "pairs": {**metrics.settings["pairs"], "threshold": threshold}}
    config = read_stored(settings, origin="rethreshold")
    require_texts_told(metrics, threshold)

    store = MemoryTables()
    store.write("documents", documents.sort_by("doc_key").select(DOCUMENTS.names))
    store.write("rejects", rejects.select(REJECTS.names))
    memory = Memory(memory_of(config), advice="run it again with this threshold, on Spark")
    with Workers(processes_of(config), memory=memory) as workers:
        job = LocalJob(config, store, workers, Progress(is_quiet=True), forced=forced)
        saved = {"documents": Saved(store.tables["documents"], len(documents), {}, {})}
        sketched = SketchedHere(job, Made(saved=saved, counts={}))
        verdicts = decide(job, sketched, metrics.stages.sketch, None, pairs)
    return Rethresholded(store.tables, metrics_of(config, verdicts.stages, verdicts.unpaired))


def forced_of(run: FinishedRun, path: str | None) -> Forced | None:
    """Return the documents that `keep.force` named when a run was made; None for no path.

    Raises:
        ConfigError: for a run without a folder, if the file is gone or not what it should be.
    """
    if path is None:
        return None
    if not run.holds(FORCED_NOTE):
        return read_forced(LocalStorage(), path)
    values = run.read_json(FORCED_NOTE)
    return Forced(tuple(values["kept"]), tuple(values["removed"]))


def require_texts_told(metrics: RunMetrics, threshold: float) -> None:
    """Refuse a run whose texts, which are not stored, would have to be compared again.

    Where the resemblance of all shingles decides, `pairs` has that of every pair at a higher threshold, if no component
    is given by leaders.

    Raises:
        ConfigError: if they would.
    """
    pairs = metrics.settings["pairs"]
    confirm = pairs.get("confirm", "none")
    is_told = confirm == "resemblance" and threshold >= pairs["threshold"]
    if confirm != "none" and not (is_told and not metrics.stages.clusters.led_components):
        lower = " for a lower threshold, or where leaders stand for a component" if confirm == "resemblance" else ""
        raise ConfigError(
            f"rethreshold: texts confirmed the pairs of this run (pairs.confirm {confirm}), and only sketches are"
            f" stored{lower}; run `nddup run` with the other pairs.threshold"
            + (" or pairs.edit_threshold" if confirm == "edit" else "")
        )


def require_tellable(header: Mapping[str, Any], path: str) -> None:
    """Refuse a run whose keep-list does not follow from its documents.

    Args:
        header: content of the run's `_RUN.json`.
        path: folder of the run, for the message.

    Raises:
        ConfigError: if the run is a version of a repository.
    """
    if "repository" in header.get("inputs", {}):
        raise ConfigError(
            f"rethreshold: {path} is a version of a repository; what it keeps follows from all versions before it, not"
            " from its documents alone; run `nddup run` over the documents"
        )


def minhash_of(documents: ds.Dataset, config: Config, doc_id: str) -> Any:  # noqa: ANN401 - a LeanMinHash
    """Return the signature of a document as a `datasketch.LeanMinHash`.

    Raises:
        ConfigError: if datasketch cannot read the run's signatures, there is no such document, or it has no features.
    """
    lean = _load(config).LeanMinHash
    rows = documents.to_table(columns=["signature"], filter=ds.field("doc_id") == pa.scalar(doc_id, pa.string()))
    if not len(rows):
        raise ConfigError(f"minhash: there is no document {doc_id!r}")
    values = rows["signature"][0].as_py()
    if not values:
        raise ConfigError(f"minhash: document {doc_id!r} has no features, and so no signature")
    hashes = np.array(values, np.int64).view(np.uint64)
    return lean(seed=config.sketch.seed, hashvalues=hashes, scheme=SCHEME)


def fill_lsh(
    documents: ds.Dataset, config: Config, *, threshold: float | None, storage_config: Mapping[str, Any] | None
) -> Any:  # noqa: ANN401 - a MinHashLSH
    """Return a `datasketch.MinHashLSH` that holds every document with a signature, under its id.

    Args:
        threshold: threshold of the index; None: that of the run.
        storage_config: where datasketch keeps the index, such as `{"type": "redis", …}`; None: in memory.

    Raises:
        ConfigError: if datasketch cannot read the run's signatures, or refuses the threshold, the size or the storage.

    Cost: a pass over the signatures, a batch at a time, and datasketch's own cost of storing them.
    """
    library = _load(config)
    share = float(config.pairs.share) if threshold is None else threshold
    storage = None if storage_config is None else dict(storage_config)
    try:
        index = library.MinHashLSH(threshold=share, num_perm=config.sketch.size, storage_config=storage)
    except ValueError as error:
        raise ConfigError(f"lsh: datasketch says: {error}") from error
    with index.insertion_session() as session:
        for doc_id, hashes in _signatures(documents):
            session.insert(doc_id, library.LeanMinHash(seed=config.sketch.seed, hashvalues=hashes, scheme=SCHEME))
    return index


def _signatures(documents: ds.Dataset) -> Iterator[tuple[str, Any]]:
    for batch in documents.to_batches(columns=["doc_id", "signature"]):
        for doc_id, values in zip(batch["doc_id"].to_pylist(), batch["signature"], strict=True):
            if values.is_valid and len(values):
                yield doc_id, values.values.to_numpy().view(np.uint64)


def _load(config: Config) -> Any:  # noqa: ANN401 - a module
    """Import datasketch; refuse a run whose signatures it cannot read."""
    made = plan.recipe_of(config).permutation
    if config.sketch.kind != "minhash" or made != "datasketch":
        raise ConfigError(
            "datasketch reads signatures of sketch.kind minhash with sketch.permutation datasketch; these are of kind"
            f" {config.sketch.kind}, permutation {made}"
        )
    return import_module("datasketch")
