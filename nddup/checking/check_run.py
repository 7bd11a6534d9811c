"""`nddup check RUN`: prove the promises of a finished run by plain methods, one line per promise.

Proved in full at any size: the accounting, equal sketches, names of clusters, members and representatives, the reasons
of the keep-list, the names of components and families, `duplicates.txt`, and the form of `pairs`. Above the limits in
`evidence`, a promise that needs comparisons of sketches is proved on a deterministic sample, and its line says so. A
sampled sketch (smallest SHA-256 of the id) or cluster (smallest id) is still compared with ALL sketches.

The proofs use no code of the pairs stage, the miners or the keep-list: see `nddup.verifying.definitions`. The queries
over the tables are in `nddup.checking`, the same for both engines.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from textwrap import fill
from typing import Any

from nddup.checking import prove_clusters, prove_documents, prove_keep, prove_names, prove_pairs
from nddup.checking.compared_texts import FAR, differences, read_again, stored_texts
from nddup.checking.evidence import Evidence, described
from nddup.checking.prove_pairs import Violations
from nddup.engines.engine import FinishedRun
from nddup.ground.shown import one_line
from nddup.mining.modes import COVERAGES
from nddup.sketching.accuracy import chance_missed
from nddup.tables import READABLE

EXAMPLES = 3
"""Largest number of violations listed under a promise."""

INCIDENCES = 5_000_000
"""(cluster, sketch) rows up to which the driver recounts connectedness in full; above it, for some components only."""


@dataclass(frozen=True)
class Finding:
    """One promise: how much of it was checked, how often it is broken, and the first examples by id."""

    promise: str
    amount: str
    broken: int
    examples: tuple[str, ...] = ()
    note: str = ""
    unproved: str = ""
    """Why it was not proved at all, or not by the texts; empty if it was, on a sample or in full."""

    is_far: bool = False
    """Whether that is because the inputs are on other machines, where they may still be."""

    @classmethod
    def of(cls, promise: str, amount: str, broken: list[str], note: str = "") -> "Finding":
        """Return the finding of a promise whose violations are listed: the first ones are its examples."""
        return cls(promise, amount, len(broken), tuple(broken[:EXAMPLES]), note)

    def line(self) -> str:
        """Return the promise as a line of the report, with its examples indented below."""
        verdict = f"BROKEN {self.broken:,}" if self.broken else "not proved" if self.unproved else "ok"
        text = f"{verdict:<10} {self.promise} ({self.amount}{'; ' + self.note if self.note else ''})"
        return "\n".join([one_line(text), *(f"           {one_line(example)}" for example in self.examples)])

    @property
    def topic(self) -> str:
        """What the promise is about: a table, the files, or how the run adds up."""
        return self.promise.partition(":")[0]


class Screen:
    """Shows findings as they are proved, a paragraph of at most 80 columns a topic as long as its promises hold.

    What is broken, or not proved, follows with a line of its own.

    Args:
        show: called with the lines of a topic once it is done.
        is_full: whether each promise has a line of its own.
    """

    def __init__(self, show: Callable[[str], None], *, is_full: bool = False) -> None:
        self._show, self._is_full = show, is_full
        self._held: list[Finding] = []

    def tell(self, finding: Finding) -> None:
        """Take the next finding."""
        if self._held and self._held[0].topic != finding.topic:
            self.end()
        self._held.append(finding)

    def end(self) -> None:
        """Show the topic that is not shown yet."""
        others = [one.line() for one in self._held if self._is_full or one.broken or one.unproved]
        sound = [one for one in self._held if not (one.broken or one.unproved)]
        if sound and not self._is_full:
            others = [fill(_sum_up(sound), 80, subsequent_indent=" " * 11, break_on_hyphens=False), *others]
        self._show("".join(f"{line}\n" for line in others))
        self._held = []


def _sum_up(sound: Sequence[Finding]) -> str:
    """Return the line of promises on one topic that hold: how many, and how much of them was checked."""
    if len(sound) == 1:
        return sound[0].line()
    amounts = dict.fromkeys(finding.amount for finding in sound if finding.amount != "all")
    scope = "; ".join([*amounts, *dict.fromkeys(finding.note for finding in sound if finding.note)])
    return one_line(f"{'ok':<10} {sound[0].topic}: {len(sound)} promises{f' ({scope})' if scope else ''}")


@dataclass(frozen=True)
class CheckReport:
    """The findings of `check_run`."""

    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether every promise holds, as far as it was checked."""
        return not any(finding.broken for finding in self.findings)

    def verdict(self) -> dict[str, Any]:
        """Return what is noted beside the run."""
        counts = {"promises": len(self.findings), "unproved": len(self.unproved)}
        return {"is_sound": self.is_sound, "summary": self.summary(), **counts}

    def summary(self) -> str:
        """Return the last line, which sums up the others."""
        broken = sum(1 for finding in self.findings if finding.broken)
        if broken:
            return f"{broken} of {len(self.findings)} promises BROKEN"
        if not self.unproved:
            return "every promise holds"
        reasons = dict.fromkeys(finding.unproved for finding in self.unproved)
        names = ", ".join(dict.fromkeys(finding.topic for finding in self.unproved))
        return one_line(
            f"no promise is broken, but {len(self.unproved)} of {len(self.findings)} were not proved"
            f" ({names}): {'; '.join(reasons)}"
        )

    @property
    def unproved(self) -> list[Finding]:
        """The promises that were not proved, because the inputs or their texts are out of reach."""
        return [finding for finding in self.findings if finding.unproved and not finding.broken]

    def text(self) -> str:
        """Return the report: a line per promise, then the summary."""
        return "\n".join([*(finding.line() for finding in self.findings), self.summary()]) + "\n"


def check_run(
    run: FinishedRun,
    *,
    steps: Sequence[str] | None = None,
    max_rejects: float | None = None,
    begin: Callable[[str, int, int], None] = lambda step, done, of: None,  # noqa: ARG005
    tell: Callable[[Finding], None] = lambda finding: None,  # noqa: ARG005
) -> CheckReport:
    """Prove the promises of a finished run.

    Args:
        steps: names of `STEPS` to run; None: all.
        max_rejects: largest share of the records that may be rejects; None: no limit.
        begin: called as each step begins, with its name, the number of steps done and their total.
        tell: called with each finding, in order.

    Returns:
        One finding per promise, in the order of the tables.

    Cost: reads the documents three times and every other table once or twice; `evidence` limits how many sketches are
        compared. Data that does not fit in the engine's memory is written to its temporary files.
    """
    evidence = Evidence(run)
    chosen = {name: STEPS[name] for name in steps or STEPS}
    if max_rejects is not None:
        limit = max_rejects
        chosen = {"rejects": lambda evidence: _few_rejects(evidence, limit)} | chosen

    findings: list[Finding] = []
    if steps is None and (files := _files(run)) is not None:
        tell(files)
        findings.append(files)
        if files.broken:  # nothing can be proved from what was not written
            return CheckReport(tuple(findings))
    try:
        for done, (name, step) in enumerate(chosen.items()):
            begin(name, done, len(chosen))
            for finding in step(evidence):
                tell(finding)
                findings.append(finding)
    finally:
        evidence.forget()
    return CheckReport(tuple(findings))


def _find(
    evidence: Evidence,
    promise: str,
    *broken: Violations,
    reads: Sequence[str] = (),
    amount: str = "all",
    note: str = "",
) -> Finding:
    """Count the violations of a promise and describe the first of them."""
    evidence.see(*reads)
    count, examples = 0, []
    for violations in broken:
        few = evidence.count(f"SELECT count(*) AS n FROM ({violations.text}) AS broken")  # noqa: S608 - a question
        if few:
            text = f"SELECT * FROM ({violations.text}) AS broken ORDER BY ALL LIMIT {EXAMPLES}"  # noqa: S608
            examples += [violations.describe(row) for row in evidence.run.sql(text).to_pylist()]
        count += few
    return Finding(promise, amount, count, tuple(sorted(examples)[:EXAMPLES]), note)


def _listed(promise: str, broken: list[str], amount: str = "all") -> Finding:
    return Finding.of(promise, amount, sorted(broken))


def _files(run: FinishedRun) -> Finding | None:
    wrong, unknown = run.unlike_written()
    if not wrong and unknown == run.noted():
        return None
    note = f"nothing was noted of {', '.join(unknown)}" if unknown else ""
    return Finding.of("files: those that were written, bit for bit", "all", wrong, note)


def _few_rejects(evidence: Evidence, limit: float) -> Iterator[Finding]:
    rejects, records = evidence.count("SELECT count(*) AS n FROM rejects"), evidence.run.metrics.records
    too_many = [f"{rejects:,} of {records:,} records are rejects"] if rejects > limit * records else []
    yield _listed(f"rejects: at most {limit:g} of the records", too_many)


def _accounting(evidence: Evidence) -> Iterator[Finding]:
    """Check that every record is a document or a reject, and every document well formed and once in the keep-list."""
    metrics, run = evidence.run.metrics, evidence.run
    # The names come from the registry: the file may be anyone's, and what it names would be read as SQL.
    counted = {name: evidence.count(f"SELECT count(*) AS n FROM {name}") for name in READABLE if run.holds(name)}  # noqa: S608
    wrong = [f"{name}: {rows} in metrics.json, {counted.get(name)} in the table" for name, rows in metrics.rows.items()
             if counted.get(name) != rows]  # fmt: skip
    total = counted["documents"] + counted["rejects"]
    if metrics.records != total:
        wrong.append(f"records: {metrics.records} read, {total} documents and rejects")

    yield _listed("accounting: records = documents + rejects, rows as metrics.json says", wrong)
    yield _find(evidence, "accounting: doc_id unique", prove_documents.REPEATED)
    if evidence.promised.is_of_repository:
        yield _find(evidence, "accounting: doc_key unique", prove_documents.REPEATED_KEYS)
    else:
        yield _find(evidence, "accounting: record ordinals of each source are 1 to n", prove_documents.MISNUMBERED)
        yield _find(evidence, "accounting: doc_key in the order of source and record", prove_documents.MISPLACED)
        yield _find(evidence, "accounting: each parent is a document or a reject", prove_documents.ORPHANED)
    yield _find(evidence, "accounting: every document once in keep", prove_documents.UNACCOUNTED)
    promise = "accounting: sketches are ascending sets as their kind calls for"
    yield _find(evidence, promise, prove_documents.DAMAGED, reads=["docs"])


def _records(evidence: Evidence) -> Iterator[Finding]:
    """Check that documents and rejects say what is read from the inputs, where these are still there."""
    promise = "records: address, tokens, sketch and fingerprints of documents, and reasons of rejects, as read again"
    again = read_again(evidence.run)
    if again.unproved or again.changed:
        broken = 1 if again.changed else 0
        examples = (again.changed,) if again.changed else ()
        yield Finding(
            promise, "none", broken, examples, again.unproved, unproved=again.unproved, is_far=again.unproved == FAR
        )
        return
    yield _listed(promise, differences(evidence.run, again), described(again.read, again.files, "files"))
    if stored := evidence.count("SELECT count(*) AS n FROM texts") if evidence.run.holds("texts") else 0:
        wrong, compared = stored_texts(evidence.run, again)
        yield _listed("texts: those of the documents, as read again", wrong, described(compared, stored, "texts"))


def _groups(evidence: Evidence) -> Iterator[Finding]:
    """Check the groups: equal sketches are found again by a digest of all their ids."""
    by_text = " and the same token_fingerprint" if evidence.promised.by_text else ""
    promise = f"groups: group is the smallest id with the same sketch{by_text}"
    yield _find(evidence, promise, prove_documents.WRONG_GROUPS, reads=["docs"])


def _pairs(evidence: Evidence) -> Iterator[Finding]:
    """Check that the rows are exactly the near-duplicates of the probes, with the right numbers."""
    claims, confirm = prove_pairs.wrong_claims(evidence.promised.rule), evidence.promised.config.pairs.confirm
    yield _find(evidence, "pairs: ids in order, each pair once", *prove_pairs.DISORDERED)
    yield _find(evidence, "pairs: a containment where the kind shows one", claims)
    promise = "pairs: numbers of shingles as the documents and the resemblance say"
    yield _find(evidence, promise, prove_pairs.wrong_shingles(confirm))

    promise = "pairs: the near-duplicates, all and only, with overlap and resemblance"
    is_cut = evidence.promised.is_cut
    note = f"candidates were cut: {evidence.not_found:,} pairs of sketches not found" if is_cut else ""
    reads = ["expected", "folded", "probes"]
    evidence.see(*reads)
    note = "; ".join(filter(None, [note, evidence.unproved]))
    finding = _find(evidence, promise, prove_pairs.WRONG_PAIRS, reads=reads, amount=evidence.amount, note=note)
    yield replace(finding, unproved=evidence.unread)
    if evidence.promised.by_text and not evidence.unread:
        yield _listed("pairs: the texts are those that the run read", [evidence.changed] if evidence.changed else [])
    if confirm == "resemblance" and not is_cut:
        yield _missed(evidence)


def _missed(evidence: Evidence) -> Finding:
    """Check that the pairs whose sketches are too unlike to be compared are as rare as the margin promises."""
    size, share = evidence.promised.config.sketch.size, evidence.promised.config.pairs.share
    pairs = evidence.count(prove_pairs.COUNT_BESIDE_LOW, "recounted", "low_probes")
    expected = chance_missed(size, share) * (pairs + evidence.missed)
    note = f"{evidence.missed:,} missed, at most {expected:.2g} expected"
    broken = evidence.missed if evidence.missed > expected + 4 * sqrt(expected) + 1 else 0
    amount = described(len(evidence.low_probes[0]), evidence.totals[0], "distinct sketches")
    return Finding("pairs: no more are missed by the sketches than expected", amount, broken, note=note)


def _clusters(evidence: Evidence) -> Iterator[Finding]:
    """Check the names of all clusters, the conditions and maximality of the chosen ones, coverage and components."""
    if not evidence.promised.mode.has_clusters:
        yield _find(evidence, "clusters: none, as clusters.mode asks", prove_clusters.UNASKED)
        return

    promise = "clusters: id, size and order of members, none twice"
    yield _find(evidence, promise, *prove_names.WRONG_NAMES, reads=["named"])

    amount = described(len(evidence.chosen.cluster_ids), evidence.clusters, "clusters")
    promise = "clusters: all pairs are near-duplicates, support is as stated and sufficient"
    yield _listed(promise, evidence.chosen.problems, amount)

    if evidence.promised.by_text:
        promise, reads = (
            "clusters: all their pairs are in pairs, whose texts were compared",
            ["placed", "chosen", "folded"],
        )
        wrong = prove_clusters.unpaired(evidence.promised.joint)
        yield _find(evidence, promise, wrong, reads=reads, amount=amount, note=evidence.unproved)

    # A chosen cluster is maximal if no sketch of the run can be added to it, and no other document of its own sketches.
    is_cut = evidence.promised.is_cut or evidence.promised.by_text
    broken = [prove_clusters.extensible(is_cut=is_cut), prove_clusters.PARTIAL]
    reads = ["added", "placed", *(["folded"] if is_cut else [])]
    yield _find(evidence, "clusters: no document can be added", *broken, reads=reads, amount=amount)
    reads = ["placed", "chosen"]
    yield _find(evidence, "clusters: none inside another", prove_clusters.NESTED, reads=reads, amount=amount)

    yield _coverages(evidence)
    yield from _coverage(evidence)
    yield _components(evidence)
    # In other runs a document with near-duplicates may be in no cluster, so clusters do not show its component.
    if evidence.promised.mode.promises == "pairs" and not evidence.promised.support:
        promise, reads = "false_components: size, pairs and invented pairs of each", ["placed", "folded"]
        yield _find(evidence, promise, prove_names.WRONG_FALSE, reads=reads)
        if evidence.count("SELECT count(leader) AS n FROM keep"):
            promise = "false_components: exact where all pairs of the component are found"
            inexact = prove_names.inexact(is_exact=evidence.promised.kind.is_exact)
            yield _find(evidence, promise, inexact, reads=["placed", "keeping"])


def _coverages(evidence: Evidence) -> Finding:
    """Check that the clusters of a component cover what the mode allows, as often as the run counted."""
    promised = evidence.promised
    clusters = promised.metrics.stages.clusters
    wrong = [prove_clusters.wrong_coverages(tuple(COVERAGES) if promised.mode.is_mined else (promised.mode.coverage,))]
    if not promised.is_of_repository and promised.mode.is_mined:
        wrong += [
            prove_clusters.miscounted(coverage, count)
            for coverage, count in (("pairs", clusters.covered_clusters), ("documents", clusters.led_clusters))
        ]
    return _find(evidence, "clusters: coverage is one of the mode's for each component, as often as counted", *wrong)


def _coverage(evidence: Evidence) -> Iterator[Finding]:
    """Check which documents are in a cluster together, as the mode promises.

    A partition promises its stars. A mode that promises pairs has a common cluster for every pair that reaches the
    support, except in components given by leaders: these promise each document some cluster only.
    """
    promised, amount = evidence.promised, evidence.amount
    if promised.mode.follows_keep:
        promise = "clusters: each kept document with its duplicates, and no others"
        yield _find(evidence, promise, prove_keep.WRONG_STARS, reads=["stars"])
    if promised.mode.promises != "pairs":
        return

    least = {"twin": prove_pairs.least_size(promised.rule), "large": promised.support}
    lost = prove_clusters.uncovered(**least)
    reads = ["met", "by_leaders", "placed", "sketches", "probes"]
    yield _find(evidence, "clusters: every pair of near-duplicates is in one", lost, reads=reads, amount=amount)
    promise = "clusters: every document with a near-duplicate is in one"
    yield _find(evidence, promise, prove_clusters.left_out(**least), reads=[*reads, "leader_nodes"], amount=amount)
    promise = "clusters: each around a leader contains one"
    wrong = prove_clusters.leaderless(is_free=promised.losing is None)
    yield _find(evidence, promise, wrong, reads=["placed", "leader_nodes", "keeping"])


def _components(evidence: Evidence) -> Finding:
    """Check the names of all components and, up to `INCIDENCES` rows, that the documents of each are connected.

    Every pair lies in a cluster, so clusters connect the same documents as pairs do. This fails for a partition, for
    components given by leaders and for a higher support: these are checked by the pairs themselves.
    """
    promised = evidence.promised
    by_leaders = "SELECT count(*) AS n FROM by_leaders"
    if promised.mode.promises != "pairs" or promised.support or evidence.count(by_leaders, "by_leaders"):
        return _components_by_pairs(evidence)

    # Whole components are sampled by a hash of their names, so that about INCIDENCES rows come to the driver.
    parts = 1 + evidence.count(prove_names.COUNT_PLACED, "placed") // INCIDENCES
    torn = prove_names.split_components(evidence.run.sql(prove_names.some_components(parts)))
    promise = "clusters: component is the smallest id of a connected part"
    amount = "all" if parts == 1 else f"connectedness of about one in {parts}, the rest of all"
    strays = _find(evidence, promise, *prove_names.STRAYING)
    examples = sorted([*strays.examples, *torn])[:EXAMPLES]
    return Finding(promise, amount, strays.broken + len(torn), tuple(examples))


def _components_by_pairs(evidence: Evidence) -> Finding:
    """Check the components by `pairs`: all pairs or, above `INCIDENCES` of them, none."""
    promise = "clusters: component is the smallest id of a connected part"
    if evidence.count(prove_names.COUNT_ENDS, "folded") > INCIDENCES:
        return Finding(promise, f"not looked at: more than {INCIDENCES:,} pairs of sketches", 0)

    evidence.see("placed")
    ends, components = (evidence.run.sql(text) for text in (prove_names.ENDS_OF_PAIRS, prove_names.SAID))
    return _listed(promise, prove_names.misnamed_parts(ends, components))


def _members(evidence: Evidence) -> Iterator[Finding]:
    """Check that the members are those of the clusters, and that the representative is the one promised.

    It is the first by the keep policy; in a frozen repository it follows from the order of arrival, which the tables do
    not tell.
    """
    yield _find(evidence, "members: the clusters, row by row", *prove_documents.WRONG_MEMBERS)
    if evidence.promised.is_frozen:
        yield _find(evidence, "members: one representative", prove_documents.UNREPRESENTED)
        return
    promise = "members: one representative, the first by policy"
    yield _find(evidence, promise, prove_documents.WRONG_REPRESENTATIVES, reads=["docs"])


def _keep(evidence: Evidence) -> Iterator[Finding]:
    """Check that no two kept documents are near-duplicates, and that each removed one has a preferred kept one.

    In a frozen repository the kept one need not be preferred.
    """
    amount, reads = evidence.amount, ["offers", "keeping"]
    yield _find(evidence, "keep: kept, duplicate_of and reason fit", prove_keep.WRONG_REASONS, reads=["keeping"])
    if same := evidence.promised.config.keep.same:
        yield _find(evidence, f"keep: none removed for one of another {', '.join(same)}", prove_keep.ACROSS,
                    reads=["keeping"])  # fmt: skip
    promise = "keep: resemblance is that of both documents"
    if evidence.count("SELECT count(resemblance) AS n FROM keep"):  # an earlier version wrote none
        yield _find(evidence, promise, prove_keep.WRONG_LIKENESS, reads=["keeping", "folded"])
        losing = evidence.promised.losing
        wrong = prove_keep.wrong_losses(losing, by_sets=evidence.promised.config.pairs.confirm == "resemblance")
        most = f", at most {evidence.promised.config.keep.max_lost:g}" if losing else ""
        yield _find(evidence, f"keep: lost is what duplicate_of lacks{most}", wrong, reads=["keeping", "commons"])
    is_frozen, excused = evidence.promised.is_frozen, evidence.promised.excused
    note, area = "", ["led_area"] if excused.is_limited else []
    too_near = prove_keep.too_near(evidence.promised.rule, excused, is_frozen=is_frozen)
    if excused.is_limited:
        every = prove_keep.too_near(evidence.promised.rule, prove_keep.Excused(is_limited=False))
        n = evidence.count(f"SELECT count(*) AS n FROM ({every.text}) AS found", *reads)  # noqa: S608 - a question
        note = f"compared with few kept ones, in components of too many pairs: {n:,} more pairs are kept"
    reads += area
    yield _find(evidence, "keep: no two kept are near-duplicates", too_near, reads=reads, amount=amount, note=note)
    if not is_frozen and evidence.count("SELECT count(leader) AS n FROM keep"):
        promise, promised = "keep: leader as the pairs say", evidence.promised
        wrong = prove_keep.wrong_leaders(is_led=promised.is_led or promised.is_of_repository)
        yield _find(evidence, promise, wrong, reads=["keeping", "folded"])
    promise = "keep: of equal contents without a feature one is kept"
    yield _find(evidence, promise, prove_keep.textless(is_frozen=is_frozen), reads=["keeping"])
    reads = ["best", "offers", "keeping", "probes", *area]
    if is_frozen:
        promise = "keep: every removed document has a kept near-duplicate, which duplicate_of names"
        yield _find(evidence, promise, prove_keep.ABANDONED, reads=reads, amount=amount)
        return
    promise = "keep: every removed document has a preferred kept near-duplicate, the best one"
    yield _find(evidence, promise, prove_keep.broken(excused), reads=reads, amount=amount)


def _families(evidence: Evidence) -> Iterator[Finding]:
    columns = evidence.promised.config.keep.ledger
    if columns is None or not evidence.run.holds("families"):
        return
    promise = "families: what each kept document stands for, once"
    yield _find(evidence, promise, prove_keep.WRONG_NUMBERS, reads=["in_families"])
    values, extremes = prove_keep.wrong_values(columns), prove_keep.wrong_extremes(columns)
    promise = f"families: the values of {', '.join(columns)}, counted again"
    yield _find(evidence, promise, values, extremes, reads=["counted_values"])


def _names(evidence: Evidence) -> Iterator[Finding]:
    if evidence.run.holds("names"):
        yield _find(evidence, "names: one for each family, and its documents", *prove_names.WRONG_FAMILIES)


def _lines(evidence: Evidence) -> Iterator[Finding]:
    promise = "duplicates.txt: the clusters, line by line"
    yield _find(evidence, promise, prove_names.WRONG_LINES, reads=["lines"])


STEPS: dict[str, Callable[[Evidence], Iterator[Finding]]] = {
    "accounting": _accounting,
    "records": _records,
    "groups": _groups,
    "pairs": _pairs,
    "clusters": _clusters,
    "members": _members,
    "keep": _keep,
    "families": _families,
    "names": _names,
    "duplicates.txt": _lines,
}
"""The checks by subject, in the order of the report."""
