"""Tables that `nddup check` compares a run with, recomputed for all sketches and clusters or for a sample.

Each table is made once, when it is first needed; `Evidence.forget` frees all of them. The promises of a run are read
from its metrics and settings alone. The clusters whose conditions are proved are those with the smallest ids.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.checking import prove_clusters, prove_documents, prove_keep, prove_names, prove_pairs
from nddup.checking.compared_texts import claims_of, confirm_pairs, pairs_of, read_whole
from nddup.checking.prove_clusters import Claim
from nddup.checking.prove_documents import FORCED
from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError, OutputError
from nddup.ground.metrics import RunMetrics
from nddup.matching.measures import MEASURES
from nddup.mining.modes import COVERAGES, MODES, ClusterMode
from nddup.settings.load import read_stored
from nddup.settings.plan import MODULUS, bands_of, candidate_share, kind_of
from nddup.sketching.kinds import Kind
from nddup.sketching.minhash import Bands
from nddup.verifying.cluster_proofs import Members, Sets, prepare_sets
from nddup.verifying.cluster_proofs import prove_clusters as prove
from nddup.verifying.definitions import Definition, Form, Rows, Sample, gather
from nddup.verifying.near_pairs import Probes, near_each


class Promised:
    """The promises of a run."""

    def __init__(self, metrics: RunMetrics) -> None:
        self.metrics = metrics
        self.config = read_stored(metrics.settings, origin="metrics.json")

    @cached_property
    def kind(self) -> Kind:
        """The kind of the sketches."""
        return kind_of(self.config.sketch)

    @cached_property
    def rule(self) -> Definition:
        """The definition of a near-duplicate, with the threshold as the exact decimal that was written.

        Where texts confirm pairs, it is the definition of a candidate.
        """
        pairs, sketch = self.config.pairs, self.config.sketch
        bands = Bands(0, 0) if sketch.verify else bands_of(self.config)
        share, exact = candidate_share(self.config), Fraction(0)
        if self.config.pairs.confirm == "resemblance" and self.kind.estimate == "smallest":
            exact = self.config.pairs.share
        return Definition(
            share.numerator if sketch.verify else bands.rows,
            share.denominator if sketch.verify else 1,
            isinstance(pairs.threshold, int) or not sketch.verify,
            MEASURES[pairs.measure].is_estimated and sketch.verify,
            Sample(self.kind.sample(sketch.size), self.kind.by_slots),
            MEASURES[pairs.measure].is_directed,
            self.kind.shows_containment,
            *bands,
            exact.numerator,
            exact.denominator,
        )

    @cached_property
    def form(self) -> Form:
        """The form that a sketch must have."""
        sketch = self.config.sketch
        size = self.config.lexicon.copies + 1 if sketch.kind == "i-match" else sketch.size
        return Form(sketch.kind, size, sketch.modulus or MODULUS, sketch.growth, sketch.tagged)

    @property
    def levels(self) -> int:
        """The parameter s of a kind whose modulus depends on the number of features; 0 for other kinds."""
        return self.config.sketch.size if self.kind.estimate == "levels" else 0

    @property
    def is_cut(self) -> bool:
        """Whether candidates were found by chance: the run then makes promises about the pairs found only."""
        return not self.kind.is_exact and self.config.sketch.verify

    @property
    def lower_rule(self) -> Definition:
        """The rule of the pairs whose texts are compared: where the resemblance decides, a margin below candidates."""
        if self.config.pairs.confirm != "resemblance":
            return self.rule
        candidates = candidate_share(self.config)
        lower = max(2 * candidates - self.config.pairs.share, candidates / 2)
        return self.rule._replace(numerator=lower.numerator, denominator=lower.denominator)

    @property
    def least(self) -> float:
        """The least resemblance of two sketches that are candidates; minus infinity where it does not decide."""
        return self.rule.numerator / self.rule.denominator if self.rule.is_resemblance else -math.inf

    @property
    def by_text(self) -> bool:
        """Whether texts confirm the pairs: the sketches alone then do not decide which are near-duplicates."""
        return self.config.pairs.confirm != "none"

    @property
    def losing(self) -> prove_keep.Losing | None:
        """What `keep.max_lost` promises; None: nothing."""
        most = self.config.keep.most_lost
        return None if most is None else prove_keep.Losing(most.numerator, most.denominator)

    @property
    def support(self) -> int:
        """`clusters.support`, the least number of features common to a cluster; 0: the threshold's bound alone."""
        return int(self.metrics.settings["clusters"]["support"] or 0)

    @property
    def is_led(self) -> bool:
        """Whether some components are given by leaders: their pairs without a leader are not listed."""
        return self.metrics.stages.clusters.led_components > 0

    @property
    def mode(self) -> ClusterMode:
        """The mode of the clusters."""
        return MODES[self.config.clusters.mode]

    @property
    def joint(self) -> tuple[str, ...]:
        """Values of `coverage` that promise that all pairs are near-duplicates, and enough features common to all."""
        return (*COVERAGES, *(mode.name for mode in MODES.values() if mode.is_joint and not mode.is_mined))

    @property
    def is_of_repository(self) -> bool:
        """Whether the tables are a version of a repository, whose documents came in several batches and may leave."""
        return self.metrics.repository is not None

    @property
    def is_frozen(self) -> bool:
        """Whether a frozen repository made the tables: what it keeps depends on the order of arrival."""
        return self.metrics.repository == "frozen"

    @property
    def excused(self) -> prove_keep.Excused:
        """Where `keep.max_lost` compared some documents with few kept ones, more may be kept than the promise says."""
        return prove_keep.Excused(self.metrics.stages.pairs.limited > 0)

    @property
    def expand_limit(self) -> int:
        """Number of document pairs of two sketches above which a star stands for them."""
        return int(self.metrics.settings["pairs"]["expand_limit"])


MEMBERS = 50_000
"""Maximum number of (cluster, sketch) rows of all clusters whose conditions are proved."""


class Chosen(NamedTuple):
    """Clusters whose conditions are proved."""

    cluster_ids: list[str]
    names: list[str]
    """Names of their nodes."""

    sets: Sets
    firsts: list[int]
    """Places in `names` of the first node of each cluster that is promised to be maximal."""

    problems: list[str]
    """Descriptions of the conditions that they break."""


PROBES = 10_000
"""Largest number of distinct sketches, or clusters, of which all are proved: some seconds of one core."""

COMPARISONS = PROBES * PROBES // 2
"""In a larger run, sample size times sketches stays at most this, but the sample has at least `LEAST_PROBES`. There are
two samples, of sketches and of clusters: together they cost no more than all of `PROBES` do."""

LEAST_PROBES = 1_000
"""Smallest sample of sketches or clusters, however large the run."""

PROBE_IDS = 10_000_000
"""Maximum number of feature ids of all probes together: 80 MB on the driver and in each task. Larger sketches mean
fewer probes."""

NEAR, NEAR_LISTED = 500_000, 1_000_000
"""About the most near-duplicates of all probes together: the first, or up to the second as many as the run lists, half
a GB. More mean fewer probes."""

NEAR_BELOW = 100_000
"""About the most pairs that are less like than candidates. More mean that fewer probes are compared with them."""

STEPS, STEPS_EACH = 500_000_000, 5_000
"""About the most ids that probes share with all sketches: some 2 s, and less than a run takes for each sketch.
More mean fewer probes."""

EXTENSIONS = 1_000_000
"""About the most sketches that are tried as further members of clusters: a second or two. More mean fewer clusters."""


def choose_clusters(
    run: FinishedRun, promised: Promised, number: int, near_each: Callable[[Rows, NDArray[np.int64]], float]
) -> Chosen:
    """Choose some clusters with the sketches of their nodes, and prove the conditions of each on its own.

    Args:
        run: the run, with the tables `placed` and `sketches`; the table `held` is added to it.
        number: number of clusters; fewer are chosen if these have more than `MEMBERS` nodes in total, or could be
            extended by more than `EXTENSIONS`.
        near_each: returns about how many sketches are near one of those at some places in rows.
    """
    run.materialise("held", prove_clusters.hold(number))
    rows = run.sql(prove_clusters.choose(MEMBERS))
    claim_rows = zip(*(rows[name].to_pylist() for name in Claim._fields), strict=True)
    sizes = [(Claim(*claim), len(list(same))) for claim, same in groupby(claim_rows)]
    claims, ends = [claim for claim, _ in sizes], np.cumsum([0, *(size for _, size in sizes)])

    nodes_of = rows["node"].to_pylist()
    names = sorted(set(nodes_of))
    wanted = pa.table({"node": pa.array(names, pa.string())})
    text = "SELECT /*+ BROADCAST(w) */ s.node, s.sketch, s.level FROM sketches AS s JOIN wanted AS w ON s.node = w.node"
    node_names, sketches = prove_pairs.gather_probes(run.sql(text, wanted=wanted))
    order = {name: i for i, name in enumerate(node_names)}

    nodes = sketches._replace(levels=None)
    places = np.array([order[node] for node in nodes_of], np.int64)
    if promised.mode.is_mined:  # whatever is near the first member of a set is tried as another one
        claims = claims[: max(1, int(EXTENSIONS / max(near_each(nodes, places[ends[:-1]]), 1.0)))]
    ends = ends[: len(claims) + 1].astype(np.int64)
    places = places[: ends[-1]]
    members = Members(ends, places)
    proved = prove(nodes, members, promised.rule)
    bounds = np.maximum(proved.bounds, promised.support)
    problems = prove_clusters.describe_wrong(claims, proved, bounds, promised.joint)
    sets = prepare_sets(nodes, members, proved.joints, bounds)
    is_maximal = [claim.coverage in prove_clusters.MAXIMAL for claim in claims]
    firsts = np.unique(places[ends[:-1][is_maximal]]).tolist()
    return Chosen([claim.cluster_id for claim in claims], node_names, sets, firsts, problems)


class Evidence:
    """The tables that the promises of one run are compared with.

    Attributes:
        promised: the promises of the run.
        unproved: the part of the confirmation by texts that could not be proved; empty until the pairs are recounted.
        unread: why no text could be read again; empty if texts were; likewise.
        changed: why the texts are not those of the run; likewise.
        missed: pairs whose resemblance reaches the threshold, but not their sketches; likewise.
    """

    def __init__(self, run: FinishedRun) -> None:
        self.run = run
        self.promised = Promised(run.metrics)
        self.unproved = self.unread = self.changed = ""
        self.missed = 0
        self._made: set[str] = set()

    def see(self, *names: str) -> None:
        """Make those of these tables of `MADE` that do not exist yet, each after the tables that it reads."""
        for name in names:
            if name not in self._made:
                self._made.add(name)
                reads, make = MADE[name]
                self.see(*reads)
                make(self)

    def count(self, text: str, *reads: str) -> int:
        """Return the one number that a query gives, after making the tables that it reads."""
        self.see(*reads)
        return int(self.run.sql(text).column(0)[0].as_py())

    @cached_property
    def totals(self) -> tuple[int, int]:
        """Number of distinct sketches that are not empty, and the total of their features."""
        self.see("docs")
        text = "SELECT count(*) AS n, CAST(coalesce(sum(size), 0) AS BIGINT) AS ids FROM docs WHERE doc_id = node AND size > 0"  # noqa: E501
        row = self.run.sql(text).to_pylist()[0]
        return int(row["n"]), int(row["ids"])

    @cached_property
    def affordable(self) -> tuple[list[str], Probes]:
        """The probes that there would be if each were near to few: those with the smallest SHA-256 of the name."""
        count, ids = self.totals
        number = sample_size(count, count)
        if ids > PROBE_IDS:
            number = max(1, min(number, count * PROBE_IDS // ids))
        return self._take_probes(number)

    def near_each(self, rule: Definition, rows: Rows | None = None, places: NDArray[np.int64] | None = None) -> float:
        """Return about how many sketches are near one of all, or of those at some places in `rows`."""
        names, probes = self.affordable
        rows = probes.sketches if rows is None else rows
        places = np.arange(len(rows.offsets) - 1) if places is None else places
        return near_each(rows, places, probes, rule) * self.totals[0] / max(len(names), 1)

    @cached_property
    def probes(self) -> tuple[list[str], Probes]:
        """The sketches that are compared with all others: all, or as many as `NEAR` and `STEPS` allow."""
        names, probes = self.affordable
        count = self.totals[0]
        near, steps = self.near_each(self.promised.rule) * len(names), probes.meetings * count / max(len(names), 1)
        most_near = max(NEAR, min(NEAR_LISTED, 2 * self.run.metrics.stages.pairs.rows_out["pairs"]))
        part = min(most_near / max(near, 1), (STEPS + STEPS_EACH * count) / max(steps, 1))
        return self.affordable if part >= 1 else self._take_probes(max(1, int(len(names) * part)))

    def _take_probes(self, number: int) -> tuple[list[str], Probes]:
        self.see("sketches")
        text = prove_pairs.UNLEVELLED
        if number < self.totals[0]:
            text = f"SELECT s.* FROM ({text}) AS s SEMI JOIN (SELECT doc_id FROM docs WHERE doc_id = node AND size > 0 ORDER BY sha2(doc_id, 256) LIMIT {number:d}) AS c ON s.node = c.doc_id"  # noqa: E501, S608 - a number
        names, sketches = prove_pairs.gather_probes(self.run.sql(text))
        return names, Probes(sketches)

    @cached_property
    def low_probes(self) -> tuple[list[str], Probes]:
        """The probes that are also compared with what is less like than a candidate: all, or each n-th."""
        names, probes = self.probes
        near = int(self.near_each(self.promised.lower_rule) * len(names))
        if near <= NEAR_BELOW or self.promised.lower_rule == self.promised.rule:
            return names, probes
        places = range(0, len(names), -(-near // NEAR_BELOW))
        return [names[place] for place in places], Probes(gather([probes.sketches.row(place) for place in places]))

    @property
    def is_sampled(self) -> bool:
        """Whether the probes are some of the sketches only."""
        return len(self.probes[0]) < self.totals[0]

    @cached_property
    def firsts(self) -> list[str]:
        """The first nodes of the chosen clusters that are promised to be maximal; none where no set is mined."""
        return [self.chosen.names[place] for place in self.chosen.firsts] if self.promised.mode.is_mined else []

    @cached_property
    def searched(self) -> tuple[list[str], Probes]:
        """The sketches that are compared with all others in one pass: the probes, and the first nodes beside them.

        Kinds whose modulus varies are not mined, so sketches of first nodes have no levels.
        """
        names, probes = self.probes
        if not self.is_sampled or not self.firsts:
            return names, probes
        known = set(names)
        more = [place for place in self.chosen.firsts if self.chosen.names[place] not in known]
        rows = [*map(probes.sketches.row, range(len(names))), *map(self.chosen.sets.nodes.row, more)]
        return [*names, *(self.chosen.names[place] for place in more)], Probes(gather(rows))

    @cached_property
    def not_found(self) -> int:
        """Number of recounted pairs of sketches that the run did not find and did not promise."""
        if not self.promised.is_cut and not self.promised.is_led:
            return 0
        return self.count(prove_pairs.COUNT_ALLOWED, "allowed_missing")

    @cached_property
    def clusters(self) -> int:
        """Number of rows of the table `clusters`."""
        return self.count("SELECT count(*) AS n FROM clusters")

    @cached_property
    def chosen(self) -> Chosen:
        """The clusters whose conditions are proved: those with the smallest ids."""
        number = sample_size(self.clusters, self.totals[0])
        self.see("placed", "sketches")
        return choose_clusters(self.run, self.promised, number, partial(self.near_each, self.promised.rule))

    @property
    def amount(self) -> str:
        """The part of the sketches that the recounted pairs cover, in words."""
        return described(len(self.probes[0]), self.totals[0], "distinct sketches")

    def forget(self) -> None:
        """Free all tables."""
        self.run.forget()
        self._made.clear()


def _mark(evidence: Evidence) -> None:
    promised = evidence.promised
    kernel = prove_documents.marker(promised.form, levels=promised.levels, is_contained=promised.rule.is_containment)
    keep = promised.config.keep
    is_forced = keep.force is not None
    if is_forced:
        evidence.run.put("forced", _forced(evidence.run))
    text = prove_documents.list_documents(keep.policy, keep.prefer or (), by_text=promised.by_text, is_forced=is_forced)
    evidence.run.transform(prove_documents.MARKED, text, kernel)


def _forced(run: FinishedRun) -> pa.Table:
    """Return FORCED: what the file of `keep.force` said when the run was made."""
    try:
        values = run.read_json("force.json")
        rows = [(doc_id, place) for name, place in (("kept", -1), ("removed", 1)) for doc_id in values[name]]
        columns = list(zip(*rows, strict=True)) or [(), ()]
        return pa.table([pa.array(columns[0], pa.string()), pa.array(columns[1], pa.int32())], FORCED.names)
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{run.path}/force.json: expected lists `kept` and `removed` of ids") from error


def _search(evidence: Evidence) -> None:
    promised, low, searches = evidence.promised, evidence.low_probes, list[prove_pairs.Search]()
    is_all = low[1] is evidence.probes[1]
    if not is_all:
        searches.append(prove_pairs.Search(*low, promised.lower_rule, below=promised.least))
    searches.append(prove_pairs.Search(*evidence.searched, promised.lower_rule if is_all else promised.rule))
    kernel = partial(prove_pairs.recount, searches=searches)
    evidence.run.transform(prove_pairs.FOUND_NEAR, prove_pairs.UNLEVELLED, kernel)


def _recount(evidence: Evidence) -> None:
    promised, run = evidence.promised, evidence.run
    of_probes = prove_pairs.OF_PROBES if evidence.is_sampled else "SELECT * FROM found_near"
    if not promised.by_text:
        run.materialise("recounted", of_probes, is_wide=not evidence.is_sampled)
        return

    rows, confirm = run.sql(of_probes), promised.config.pairs.confirm
    pairs = pairs_of(rows)
    read = _read_no_texts if promised.is_of_repository else partial(read_whole, run)
    confirmed = confirm_pairs(pairs, claims_of(run, confirm, pairs), promised.config, read)
    evidence.unproved, evidence.unread, evidence.changed = confirmed.note, confirmed.unread, confirmed.changed

    # Pairs below the candidates were compared as well: those that are near by their texts were missed by the sketches.
    is_near, is_candidate = ~np.isnan(confirmed.values), rows["likeness"].to_numpy() >= promised.least
    was_compared = np.zeros(len(is_near), np.bool_)
    was_compared[pairs.of_row[is_candidate]] = True
    evidence.missed = int(np.count_nonzero(is_near & ~was_compared))

    is_kept = is_candidate & is_near[pairs.of_row]
    kept, values = rows.filter(pa.array(is_kept)), pa.array(confirmed.values[pairs.of_row[is_kept]])
    for name in (confirm, "likeness"):  # what decides, and the rank of several near-duplicates
        kept = kept.set_column(kept.schema.get_field_index(name), name, values)
    run.put("recounted", kept)


def _read_no_texts(names: set[str]) -> dict[str, str]:
    raise ConfigError(f"a repository stores the shingles of the {len(names):,} texts: nddup index check counts them")


def _list_allowed_missing(evidence: Evidence) -> None:
    """Make `allowed_missing`, the recounted pairs that the run may lack.

    With a kind that finds candidates by chance, these are all pairs not found; otherwise those of two documents that
    follow leaders.
    """
    if not evidence.promised.is_cut:
        evidence.see("led_nodes")
    evidence.run.materialise(
        "allowed_missing", "SELECT * FROM lost" if evidence.promised.is_cut else prove_pairs.OPTIONAL
    )


def _list_expected(evidence: Evidence) -> None:
    if evidence.promised.is_cut or evidence.promised.is_led:
        evidence.see("allowed_missing")
        evidence.run.materialise("truth", prove_pairs.PROMISED)
    else:
        evidence.run.materialise("truth", "SELECT * FROM recounted", is_wide=True)


def _expect(evidence: Evidence) -> None:
    promised, confirm = evidence.promised, evidence.promised.config.pairs.confirm
    evidence.run.materialise(
        "expected", prove_pairs.expect_rows(promised.rule, limit=promised.expand_limit, confirm=confirm)
    )


def _look_beside(evidence: Evidence) -> None:
    """Make `beside`, the near-duplicates of the first nodes; those of a sample are not compared by their texts.

    Where only what is in `pairs` with all members can be added (`prove_clusters.extensible`), only pairs are tried.
    """
    rule, table = evidence.promised.rule, "found_near" if evidence.is_sampled else "recounted"
    evidence.see(table)
    least = rule.numerator / rule.denominator if evidence.is_sampled and rule.is_resemblance else 0.0
    text = prove_clusters.NEAR_FIRSTS.format(table=table, least=least)
    if evidence.promised.is_cut or evidence.promised.by_text:
        evidence.see("folded")
        text = prove_clusters.PAIRED.format(near=text)
    evidence.run.materialise("beside", f"{text} ORDER BY r.other")  # `extend` is quicker on equal sketches together


def _extend(evidence: Evidence) -> None:
    chosen, rule = evidence.chosen, evidence.promised.rule
    kernel = partial(
        prove_clusters.extend, names=chosen.names, cluster_ids=chosen.cluster_ids, sets=chosen.sets, rule=rule
    )
    evidence.run.transform(prove_clusters.ADDED, prove_clusters.SKETCHES_BESIDE, kernel)


def _list_leader_nodes(evidence: Evidence) -> None:
    promised, text = evidence.promised, prove_clusters.BY_LEADERS
    if promised.is_led:
        evidence.see("led_area")
        text = f"{text} UNION SELECT node FROM led_area"  # noqa: S608 - the text above
    if promised.support and evidence.count(f"SELECT count(*) AS n FROM ({text}) AS led"):  # noqa: S608 - the text above
        text = f"{text} UNION {prove_clusters.UNPLACED}"
    evidence.run.materialise("by_leaders", text)


def _weigh(evidence: Evidence) -> None:
    """Make `offers`; where candidates were cut, of the pairs found, else of all: `keep.max_lost` compares more."""
    table = "truth" if evidence.promised.is_cut else "recounted"
    evidence.see(table)
    evidence.run.materialise("offers", prove_keep.weigh(evidence.promised.rule, evidence.promised.losing, table=table))


def _recount_members(evidence: Evidence) -> None:
    kernel = partial(prove_names.recount_members, max_listed=evidence.promised.config.clusters.max_listed)
    evidence.run.transform(prove_names.RECOUNTED_MEMBERS, prove_names.ALL_MEMBERS, kernel, by=prove_names.IN_ORDER)


def _listed(name: str, column: str, ids: Callable[[Evidence], list[str]]) -> Callable[[Evidence], None]:
    return lambda evidence: evidence.run.put(name, pa.table({column: pa.array(ids(evidence), pa.string())}))


def _asked(name: str, text: str, *, is_wide: bool = False) -> Callable[[Evidence], None]:
    """Return a function that materialises the answer to a query under a name."""
    return lambda evidence: evidence.run.materialise(name, text, is_wide=is_wide)


Made = tuple[tuple[str, ...], Callable[[Evidence], None]]

MADE: dict[str, Made] = {
    "marked": ((), _mark),
    "nodes": (("marked",), _asked("nodes", prove_documents.NODES)),
    "docs": (("marked", "nodes"), lambda evidence: evidence.run.materialise(
        "docs", prove_documents.name_nodes(prove_documents.HEAVY))),
    "sketches": (("docs",), _asked("sketches", prove_documents.SKETCHES, is_wide=True)),
    "probes": (("sketches",), _listed("probes", "node", lambda evidence: evidence.probes[0])),
    "low_probes": (("probes",), _listed("low_probes", "node", lambda evidence: evidence.low_probes[0])),
    "found_near": (("sketches", "probes"), _search),
    "recounted": (("found_near", "folded"), _recount),
    "folded": (("docs",), _asked("folded", prove_pairs.FOLDED)),
    "lost": (("recounted", "folded"), _asked("lost", prove_pairs.LOST)),
    "allowed_missing": (("lost",), _list_allowed_missing),
    "truth": (("recounted",), _list_expected),
    "expected": (("truth", "sketches", "probes"), _expect),
    "placed": (("docs",), _asked("placed", prove_clusters.PLACED)),
    "by_leaders": (("placed",), _list_leader_nodes),
    "chosen": ((), _listed("chosen", "cluster_id", lambda evidence: evidence.chosen.cluster_ids)),
    "firsts": ((), _listed("firsts", "node", lambda evidence: evidence.firsts)),
    "beside": (("firsts",), _look_beside),
    "added": (("beside",), _extend),
    "recounted_members": ((), _recount_members),
    "named": (("recounted_members",), _asked("named", prove_names.NAMED)),
    "keeping": (("docs",), lambda evidence: evidence.run.materialise(
        "keeping", prove_keep.list_keeping(evidence.promised.config.keep.same_places))),
    "in_families": ((), _asked("in_families", prove_keep.IN_FAMILIES)),
    "counted_values": (("in_families",), lambda evidence: evidence.run.materialise(
        "counted_values", prove_keep.list_values(evidence.promised.config.keep.ledger_places))),
    "leader_nodes": (("keeping",), _asked("leader_nodes", prove_keep.LEADERS)),
    "led_nodes": (("folded", "heads", "leader_nodes"), _asked("led_nodes", prove_keep.LED)),
    "led_area": (("led_nodes", "leader_nodes"), _asked("led_area", prove_keep.LED_AREA)),
    "offers": (("keeping", "probes", "heads", "commons"), _weigh),
    "heads": (("keeping",), _asked("heads", prove_keep.HEADS)),
    "commons": (("folded",), _asked("commons", prove_keep.COMMONS)),
    "best": (("offers", "keeping"), _asked("best", prove_keep.BEST)),
    "stars": (("keeping",), _asked("stars", prove_keep.STARS)),
    "met": (("truth",), lambda evidence: evidence.run.materialise(
        "met", f"SELECT * FROM truth WHERE overlap >= {evidence.promised.support:d}", is_wide=True)),  # noqa: S608
    "lines": ((), lambda evidence: evidence.run.transform_text(
        prove_names.LINES, "duplicates.txt", prove_names.read_lines)),
}  # fmt: skip
"""Each table by name: the tables that it reads, and the function that makes it."""


def sample_size(probes: int, others: int) -> int:
    """Return how many of `probes` to compare with `others`: all up to `PROBES`, above it what `COMPARISONS` allows."""
    return probes if max(probes, others) <= PROBES else min(probes, max(LEAST_PROBES, COMPARISONS // max(others, 1)))


def described(part: int, whole: int, what: str) -> str:
    """Return a phrase such as `all 362 clusters`, or `sample of 1,000 of 50,000 clusters`."""
    return f"all {whole:,} {what}" if part == whole else f"sample of {part:,} of {whole:,} {what}"
