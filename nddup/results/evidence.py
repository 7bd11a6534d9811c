"""Tables that `nddup check` compares a run with, recomputed for all sketches and clusters or for a sample.

Each table is made once, when it is first needed; `Evidence.forget` frees all of them.
"""

from collections.abc import Callable
from functools import cached_property, partial

import pyarrow as pa

from nddup.checking import prove_clusters, prove_documents, prove_keep, prove_names, prove_pairs
from nddup.opened.finished_run import FinishedRun
from nddup.results.chosen_clusters import Chosen, choose_clusters
from nddup.results.promised import Promised
from nddup.verifying.definitions import gather
from nddup.verifying.near_pairs import Probes

PROBES = 20_000
"""Largest number of distinct sketches, or clusters, of which all are proved: some minutes of one core."""

COMPARISONS = PROBES * PROBES
"""In a larger run, sample size times sketches stays at most this, but the sample has at least `LEAST_PROBES`."""

LEAST_PROBES = 1_000
"""Smallest sample of sketches or clusters, however large the run."""

PROBE_IDS = 10_000_000
"""Most feature ids of all probes together: 80 MB on the driver and in each task. Larger sketches mean fewer probes."""


class Evidence:
    """The tables that the promises of one run are compared with.

    Args:
        run: the run.

    Attributes:
        promised: the promises of the run.
        unproved: the part of the confirmation by texts that could not be proved; empty until the pairs are recounted.
    """

    def __init__(self, run: FinishedRun) -> None:
        self.run = run
        self.promised = Promised(run.metrics)
        self.unproved = ""
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
    def probes(self) -> tuple[list[str], Probes]:
        """The sketches that are compared with all others: all, or those with the smallest SHA-256 of the name."""
        count, ids = self.totals
        number = sample_size(count, count)
        if ids > PROBE_IDS:
            number = max(1, min(number, count * PROBE_IDS // ids))

        self.see("sketches")
        text = prove_pairs.UNLEVELLED
        if number < count:
            text = f"SELECT s.* FROM ({text}) AS s SEMI JOIN (SELECT doc_id FROM docs WHERE doc_id = node AND size > 0 ORDER BY sha2(doc_id, 256) LIMIT {number:d}) AS c ON s.node = c.doc_id"  # noqa: E501, S608 - a number
        names, sketches = prove_pairs.gather_probes(self.run.sql(text))
        return names, Probes(sketches)

    @cached_property
    def not_found(self) -> int:
        """Number of recounted pairs of sketches that the run did not find and did not promise."""
        if not self.promised.is_cut and not self.promised.is_led:
            return 0
        return self.count(prove_pairs.COUNT_EXCUSED, "excused")

    @cached_property
    def clusters(self) -> int:
        """Number of rows of the table `clusters`."""
        return self.count("SELECT count(*) AS n FROM clusters")

    @cached_property
    def chosen(self) -> Chosen:
        """The clusters whose conditions are proved: those with the smallest ids."""
        number = sample_size(self.clusters, self.totals[0])
        self.see("placed", "sketches")
        return choose_clusters(self.run, self.promised, number)

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
    text = prove_documents.list_documents(keep.policy, keep.prefer or (), by_text=promised.by_text)
    evidence.run.transform(prove_documents.MARKED, text, kernel)


def _name_documents(evidence: Evidence) -> None:
    evidence.run.keep("docs", prove_documents.name_nodes(prove_documents.HEAVY))


def _recount(evidence: Evidence) -> None:
    kernel = prove_pairs.recounter(*evidence.probes, evidence.promised.rule)
    if not evidence.promised.by_text:
        evidence.run.transform(prove_pairs.RECOUNTED, prove_pairs.UNLEVELLED, kernel)
        return

    # The module that reads texts is loaded only where texts confirm the pairs.
    from nddup.results.confirmed_pairs import claims_of, confirm_pairs, ends_of, keep_confirmed, read_whole  # noqa: PLC0415

    run = evidence.run
    run.transform(prove_pairs.CANDIDATES, prove_pairs.UNLEVELLED, kernel)
    evidence.see("folded")
    candidates = run.sql("SELECT * FROM candidates")
    threshold = evidence.promised.config.pairs.edit_threshold
    confirmed = confirm_pairs(ends_of(candidates), claims_of(run), threshold, partial(read_whole, run))
    evidence.unproved = confirmed.note
    run.put("recounted", keep_confirmed(candidates, confirmed.pairs))


def _put_probes(evidence: Evidence) -> None:
    evidence.run.put("probes", pa.table({"node": pa.array(evidence.probes[0], pa.string())}))


def _excuse(evidence: Evidence) -> None:
    """Make `excused`, the recounted pairs that the run may lack.

    With a kind that finds candidates by chance, these are all pairs not found; otherwise those of two removed documents
    in components given by leaders.
    """
    if not evidence.promised.is_cut:
        evidence.see("by_leaders", "kept_nodes")
    evidence.run.keep("excused", "SELECT * FROM lost" if evidence.promised.is_cut else prove_pairs.OPTIONAL)


def _tell_truth(evidence: Evidence) -> None:
    if evidence.promised.is_cut or evidence.promised.is_led:
        evidence.see("excused")
        evidence.run.keep("truth", prove_pairs.PROMISED)
    else:
        evidence.run.keep("truth", "SELECT * FROM recounted", is_wide=True)


def _expect(evidence: Evidence) -> None:
    promised = evidence.promised
    evidence.run.keep(
        "expected", prove_pairs.expect_rows(promised.rule, limit=promised.expand_limit, by_text=promised.by_text)
    )


def _look_beside(evidence: Evidence) -> None:
    """Make `beside`, the near-duplicates of the first nodes of the chosen clusters.

    Its rows come from `recounted` if all sketches are probes; otherwise they are computed here.
    """
    names, rows = [evidence.chosen.names[place] for place in evidence.chosen.firsts], evidence.chosen.sets.nodes
    if len(evidence.probes[0]) == evidence.totals[0]:
        evidence.see("recounted")
        evidence.run.put("firsts", pa.table({"node": pa.array(names, pa.string())}))
        evidence.run.keep("beside", prove_clusters.NEAR_FIRSTS, is_wide=True)
        return

    probes = Probes(gather([rows.row(place) for place in evidence.chosen.firsts]))
    kernel = prove_pairs.recounter(names, probes, evidence.promised.rule)
    evidence.run.transform(prove_clusters.BESIDE, prove_pairs.UNLEVELLED, kernel)


def _extend(evidence: Evidence) -> None:
    chosen = evidence.chosen
    kernel = prove_clusters.extender(chosen.names, chosen.cluster_ids, chosen.sets, evidence.promised.rule)
    evidence.run.transform(prove_clusters.ADDED, prove_clusters.SKETCHES_BESIDE, kernel)


def _tell_leaders(evidence: Evidence) -> None:
    """Make `by_leaders`, the nodes of components that are, or may be, given by leaders.

    Modes of disjoint clusters show that some components are given by leaders, but not which; without clusters, any
    component may be.
    """
    promised, text = evidence.promised, prove_clusters.BY_LEADERS
    if promised.is_led and promised.mode == "none":
        text = prove_clusters.ANY_NODE
    elif promised.is_led and promised.mode in ("partition", "components"):
        most = 0 if promised.by_text else promised.max_edges  # with texts it limits candidates, absent from clusters
        text = prove_clusters.could_be_large(most)
    elif promised.support and evidence.count(f"SELECT count(*) AS n FROM ({text}) AS led"):  # noqa: S608 - the text above
        text = f"{text} UNION {prove_clusters.UNPLACED}"
    elif promised.support and promised.is_led:
        text = prove_clusters.UNPLACED
    evidence.run.keep("by_leaders", text)


def _put_chosen(evidence: Evidence) -> None:
    evidence.run.put("chosen", pa.table({"cluster_id": pa.array(evidence.chosen.cluster_ids, pa.string())}))


def _recount_members(evidence: Evidence) -> None:
    kernel = prove_names.recounter_of_members(evidence.promised.config.clusters.max_listed)
    evidence.run.transform(prove_names.RECOUNTED_MEMBERS, prove_names.ALL_MEMBERS, kernel, by=prove_names.IN_ORDER)


def _read_lines(evidence: Evidence) -> None:
    evidence.run.transform_text(prove_names.LINES, "duplicates.txt", prove_names.read_lines)


def _asked(name: str, text: str, *, is_wide: bool = False) -> Callable[[Evidence], None]:
    """Return a function that keeps the answer to a query under a name."""
    return lambda evidence: evidence.run.keep(name, text, is_wide=is_wide)


Made = tuple[tuple[str, ...], Callable[[Evidence], None]]

MADE: dict[str, Made] = {
    "marked": ((), _mark),
    "nodes": (("marked",), _asked("nodes", prove_documents.NODES)),
    "docs": (("marked", "nodes"), _name_documents),
    "sketches": (("docs",), _asked("sketches", prove_documents.SKETCHES, is_wide=True)),
    "probes": (("sketches",), _put_probes),
    "recounted": (("sketches",), _recount),
    "folded": (("docs",), _asked("folded", prove_pairs.FOLDED)),
    "lost": (("recounted", "folded"), _asked("lost", prove_pairs.LOST)),
    "excused": (("lost",), _excuse),
    "truth": (("recounted",), _tell_truth),
    "expected": (("truth", "sketches", "probes"), _expect),
    "placed": (("docs",), _asked("placed", prove_clusters.PLACED)),
    "by_leaders": (("placed",), _tell_leaders),
    "chosen": ((), _put_chosen),
    "beside": (("sketches",), _look_beside),
    "added": (("beside",), _extend),
    "recounted_members": ((), _recount_members),
    "named": (("recounted_members",), _asked("named", prove_names.NAMED)),
    "keeping": (("docs",), _asked("keeping", prove_keep.KEEPING)),
    "kept_nodes": (("keeping",), _asked("kept_nodes", "SELECT DISTINCT node FROM keeping WHERE kept")),
    "offers": (("truth", "keeping", "probes"), lambda evidence: evidence.run.keep(
        "offers", prove_keep.weigh(evidence.promised.rule))),
    "best": (("offers",), _asked("best", prove_keep.BEST)),
    "stars": ((), _asked("stars", prove_keep.STARS)),
    "met": (("truth",), lambda evidence: evidence.run.keep(
        "met", f"SELECT * FROM truth WHERE overlap >= {evidence.promised.support:d}", is_wide=True)),  # noqa: S608
    "lines": ((), _read_lines),
}  # fmt: skip
"""Each table by name: the tables that it reads, and the function that makes it."""


def sample_size(probes: int, others: int) -> int:
    """Return how many of `probes` to compare with `others`: all up to `PROBES`, above it what `COMPARISONS` allows."""
    return probes if max(probes, others) <= PROBES else min(probes, max(LEAST_PROBES, COMPARISONS // max(others, 1)))


def described(part: int, whole: int, what: str) -> str:
    """Return a phrase such as `all 362 clusters`, or `sample of 1,000 of 50,000 clusters`."""
    return f"all {whole:,} {what}" if part == whole else f"sample of {part:,} of {whole:,} {what}"
