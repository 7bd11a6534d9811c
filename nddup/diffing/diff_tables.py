"""Compare two finished runs, and write what differs.

    before, after   --see_runs-->   the tables of both, in the engine of the later run
    --diff_runs-->  CHANGES, PAIR_CHANGES, FAMILY_CHANGES, SET_CHANGES
    these           --count_diff--> Difference: counts, the largest, settings and versions that differ

The folder holds these tables; documents/ and keep/, the later rows that the earlier run lacks, which make the later
tables with `changes`; index.html, the page; and _DIFF.json, the runs and the counts as --json prints them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.engines.duck import DuckRun
from nddup.engines.engine import FinishedRun
from nddup.ground.shown import as_text, counted, spell_json
from nddup.mining.keep_verdicts import FORCED_NOTE
from nddup.report.diff_page import choose_changes, draw_changes
from nddup.settings.load import read_stored
from nddup.settings.plan import kind_of, threshold_of
from nddup.settings.schema import SOURCE_COLUMN
from nddup.stages.diff_runs import DiffRule, diff_runs, join_runs, list_later, see_names
from nddup.storage.local_storage import LocalStorage, require_new, written_apart
from nddup.tables import DOCUMENTS, KEEP, NAMES
from nddup.tables.features import DIFF_TABLES

DECIDING = ("input", "tokens", "shingle", "sketch", "pairs", "keep")
"""The sections of the settings that decide verdicts; `lexicon` too, for the kinds of words."""

NOT_DECIDING = frozenset({
    "input.max_rejects", "input.max_unreadable", "pairs.max_comparisons", "keep.force", "keep.all_known", "keep.ledger",
})  # fmt: skip
"""Settings of these that decide when a run stops, or only what is counted; and keep.force, whose documents are compared
one by one."""

NOT_COMPARED = frozenset({"output", "spark"})
"""Sections of the settings that decide only how a run is made, and what is written beside its tables."""

ENVIRONMENT = frozenset({"spark"})
"""Versions that decide no result."""

MOST_LISTED = 10
"""Maximum number of families, and most sets, that are printed; the tables have all."""

COUNTS: Mapping[str, Mapping[str, str]] = {
    "changes": {
        "added": "count_if(change = 'added')",
        "gone": "count_if(change = 'gone')",
        "text": "count_if(change = 'text')",
        "row": "count_if(change = 'row')",
        "verdicts": "count(cause)",
        "now_kept": "count_if(cause IS NOT NULL AND kept_after AND NOT kept_before)",
        "now_removed": "count_if(cause IS NOT NULL AND kept_before AND NOT kept_after)",
        "other_original": "count_if(cause IS NOT NULL AND kept_before = kept_after)",
    },
    "pair_changes": {"won": "count_if(change = 'won')", "lost": "count_if(change = 'lost')"},
    "crowded_sets": {"crowded_sets": "count(*)"},
}
"""What is counted of the tables."""

CAUSES = "SELECT cause, count(*) AS n FROM changes WHERE cause IS NOT NULL GROUP BY cause ORDER BY n DESC, cause"

GROUPS = """
    SELECT change, count(*) AS n FROM {name} WHERE greatest(before, after) > 1 GROUP BY change ORDER BY n DESC, change
"""
"""The families, or sets, of two documents and more."""

LARGEST = """
    SELECT name, change, before, after, came, went FROM {name} WHERE greatest(before, after) > 1
    ORDER BY came + went DESC, name LIMIT {most}
"""

WHY = {
    "text": "their own text is another",
    "values": "values of columns that decide, or keep.force",
    "settings": "settings differ",
    "neighbours": "a near-duplicate came, went or changed",
    "order": "the order of the documents",
    "version": "another version",
    "other": "none of these, such as the lexicon of the collection",
}
"""The causes, as they are printed."""


class Difference(NamedTuple):
    """What was counted of a diff."""

    settings: list[dict[str, Any]]
    """`name`, `before`, `after` of each setting that differs."""

    versions: list[dict[str, Any]]
    """Likewise."""

    counts: dict[str, int]
    """As `COUNTS`."""

    causes: dict[str, int]
    """The verdicts that changed, by cause."""

    families: dict[str, int]
    """Families of two documents and more, by what became of them."""

    sets: dict[str, int]

    largest: dict[str, list[dict[str, Any]]]
    """The families, and the sets, to and from which most documents moved."""

    rows: int
    """Rows of all tables."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs: no row, no setting and no version that decides results."""
        return not self.rows and not self.settings and not self.deciding_versions

    @property
    def deciding_versions(self) -> list[dict[str, Any]]:
        """The versions that differ and may decide results."""
        return [row for row in self.versions if row["name"] not in ENVIRONMENT]


HEADER = "_DIFF.json"
PAGE = "index.html"


def diff_finished(before: FinishedRun, after: FinishedRun) -> Difference:
    """Compare two finished runs of one engine; the later one holds the tables of the diff until `forget`.

    Raises:
        ConfigError: if the settings of a run cannot be read.
        NddupError: if a table cannot be read.

    Cost: as `diff_runs`. The embedded engine holds the narrow columns of the earlier run, some 300 bytes a document.
    """
    before.forget()
    after.forget()
    settings = _differing(_flat(before.metrics.settings), _flat(after.metrics.settings))
    versions = _differing(before.metrics.versions, after.metrics.versions)
    rule = rule_of(before, after, [row["name"] for row in settings], [row["name"] for row in versions])
    see_runs(before, after, rule)
    diff_runs(after, rule)
    return count_diff(after, settings, versions)


def rule_of(before: FinishedRun, after: FinishedRun, settings: list[str], versions: list[str]) -> DiffRule:
    """Return what is known of two runs, from the names of the settings and versions that differ."""
    earlier, later = (read_stored(run.metrics.settings, origin=f"{run.path}/metrics.json") for run in (before, after))
    sections = (*DECIDING, "lexicon") if kind_of(later.sketch).is_of_words else DECIDING
    decide = [name for name in settings if name.partition(".")[0] in sections and name not in NOT_DECIDING]
    return DiffRule(
        threshold_of(earlier),
        threshold_of(later),
        same_settings=not decide,
        same_versions=not set(versions) - ENVIRONMENT,
        columns=len(later.keep.deciding) if earlier.keep.deciding == later.keep.deciding else 0,
        by_source=any(
            keep.prefer is not None or SOURCE_COLUMN in (keep.same or ()) for keep in (earlier.keep, later.keep)
        ),
    )


def see_runs(before: FinishedRun, after: FinishedRun, rule: DiffRule) -> None:
    """Give the later run the tables of the earlier one, the names of families, and what keep.force differs in."""
    led = before.count("keep", {"n": "count_if(leader)"})["n"]
    after.see("before_documents", before.answer(rule.rows(sketch=bool(led))))
    for name, columns in (("pairs", "doc_a, doc_b, overlap, resemblance"), ("keep", "*"), ("members", "*")):
        after.see(f"before_{name}", before.answer(f"SELECT {columns} FROM {name}"))  # noqa: S608 - our names
    is_named = before.holds(NAMES.name)
    if is_named:
        after.see("before_names", before.answer("SELECT name, doc_id FROM names"))
    join_runs(after, rule)
    see_names(after, before=is_named, after=after.holds(NAMES.name))
    forced = [set(_forced(run)) for run in (before, after)]
    ids = sorted({doc_id for doc_id, _ in forced[0] ^ forced[1]})
    after.put("reforced", pa.table({"doc_id": pa.array(ids, pa.string())}))


def count_diff(run: FinishedRun, settings: list[dict[str, Any]], versions: list[dict[str, Any]]) -> Difference:
    """Count what `diff_runs` made."""
    counts = {name: n for table, asked in COUNTS.items() for name, n in run.count(table, asked).items()}
    causes = {row["cause"]: row["n"] for row in run.sql(CAUSES).to_pylist()}
    groups, largest = {}, {}
    for kind, name in (("families", "family_changes"), ("sets", "set_changes")):
        groups[kind] = {row["change"]: row["n"] for row in run.sql(GROUPS.format(name=name)).to_pylist()}
        largest[kind] = run.sql(LARGEST.format(name=name, most=MOST_LISTED)).to_pylist()
    rows = sum(run.count(name, {"n": "count(*)"})["n"] for name in DIFF_TABLES)
    return Difference(settings, versions, counts, causes, groups["families"], groups["sets"], largest, rows)


def say_diff(difference: Difference) -> Iterator[str]:
    """Yield the lines of the summary: settings first, then counts, then the largest."""
    for row in difference.settings:
        yield f"setting {row['name']}: {as_text(row['before'])} -> {as_text(row['after'])}"
    if difference.versions:
        yield "versions: " + ", ".join(
            f"{row['name']} {row['before']} -> {row['after']}" for row in difference.versions
        )
    if not difference.rows:
        yield "no difference" if difference.is_empty else "no table differs"
        return
    counts = difference.counts
    yield f"documents: {counts['added']:,} added, {counts['gone']:,} gone, {counts['text']:,} with another text"
    yield (
        f"verdicts: {counts['verdicts']:,} changed: {counts['now_kept']:,} now kept, {counts['now_removed']:,} now"
        f" removed, {counts['other_original']:,} for another document"
    )
    for cause, n in difference.causes.items():
        yield f"  {n:,}: {WHY[cause]}"
    yield f"pairs: {counts['won']:,} won, {counts['lost']:,} lost"
    for kind, groups in (("families", difference.families), ("sets", difference.sets)):
        yield f"{kind}: " + (", ".join(f"{n:,} {change}" for change, n in groups.items()) or "the same")
    if crowded := counts["crowded_sets"]:
        yield f"  {counted(crowded, 'set')} of these overlap too many to be compared: they are born or gone"
    for kind, one in (("families", "family"), ("sets", "set")):
        for row in difference.largest[kind]:
            size = f"{row['before']:,} -> {counted(row['after'], 'document')}"
            yield f"{one} {row['name']}: {row['change']}, {size} (+{row['came']:,} -{row['went']:,})"


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{section}.{key}": value
        for section, values in settings.items()
        if section not in NOT_COMPARED and isinstance(values, Mapping)
        for key, value in values.items()
    }


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [{"name": name, "before": before.get(name), "after": after.get(name)} for name in names]


def _forced(run: FinishedRun) -> Iterator[tuple[str, str]]:
    if run.holds(FORCED_NOTE):
        for kind, ids in run.read_json(FORCED_NOTE).items():
            yield from ((doc_id, kind) for doc_id in ids)


def queries() -> dict[str, str]:
    """Return the query for the rows of each table as it is written, sorted by its first columns."""
    made = {name: f"SELECT * FROM {name} ORDER BY {', '.join(t.names[:2])}" for name, t in DIFF_TABLES.items()}  # noqa: S608
    return made | {name: f"{list_later(name)} ORDER BY d.doc_id" for name in ("documents", "keep")}


def draw_page(run: FinishedRun, before: str, after: str, difference: Difference) -> str:
    """Return the page of a diff that the later run holds."""
    return draw_changes(choose_changes(run), tell(before, after, difference), WHY)


def spell_header(before: str, after: str, difference: Difference) -> str:
    """Return the header: what --json prints."""
    return spell_json(tell(before, after, difference))


def tell(before: str, after: str, difference: Difference) -> dict[str, Any]:
    """Return the runs and the counts as JSON values."""
    return {"before": before, "after": after, "differs": not difference.is_empty, **difference._asdict()}


def diff_here(before: str, after: str, output: str | None) -> Difference:
    """Compare two runs of this machine, and write the output, if any.

    Raises:
        OutputError: if a run is not finished, or the output exists or cannot be written.
        NddupError: if a table cannot be read.

    Cost: as `diff_finished`.
    """
    if output is not None:
        require_new(LocalStorage(), (before, after), output)
    later = DuckRun(after)
    difference = diff_finished(DuckRun(before), later)
    if output is not None:
        write_diff(later, difference, before, after, output)
    return difference


def write_diff(run: FinishedRun, difference: Difference, before: str, after: str, output: str) -> None:
    """Write the tables of a diff that a run of this machine holds.

    Raises:
        OutputError: if they cannot be written.
    """
    from nddup.storage.local_folder import write_tables  # noqa: PLC0415 - without --output nothing is written

    with written_apart(output) as apart:
        write_tables(apart, diff_tables(run))
        (apart / PAGE).write_text(draw_page(run, before, after, difference), encoding="utf-8")
        (apart / HEADER).write_text(spell_header(before, after, difference), encoding="utf-8")


def diff_tables(run: FinishedRun) -> dict[str, pa.Table]:
    """Return the tables that a run of this machine holds after `diff_finished`, with their declared types."""
    declared = {name: table.arrow for name, table in DIFF_TABLES.items()} | {
        "documents": pa.schema([field for field in DOCUMENTS.arrow if field.name != "doc_key"]),
        "keep": KEEP.arrow,
    }
    return {name: run.sql(text).cast(declared[name]) for name, text in queries().items()}
