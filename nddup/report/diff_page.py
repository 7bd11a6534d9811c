"""The page of `nddup diff`: settings that differ, counts, verdicts by cause, and the groups that changed most.

    choose_changes   the tables of a diff   -> the documents and groups that are shown
    draw_changes     these, the counts      -> the page: one file without scripts

Ids may be hostile: they are escaped, and the page may load nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from nddup.engines.engine import Engine
from nddup.ground.shown import as_text
from nddup.report.frame import Link, draw_number, draw_page

EACH = 10
"""Maximum number of documents of each cause, and of groups of each kind of change, shown; the tables have all."""

FEW = 6
"""Settings that are shown at once; more are folded, so that the counts stay on the first screen."""

KINDS = {
    "born": "New", "gone": "Gone", "split": "Split", "merged": "Merged", "grown": "Grown", "shrunk": "Shrunk",
    "changed": "Of the same size",
}  # fmt: skip

GROUPS = (("families", "Families", "family_changes"), ("sets", "Sets", "set_changes"))
"""The counts, the heading and the table of each kind of group."""

ABOUT = {
    "families": "A family is a kept document and what it stands for; its name lasts from run to run. One of the"
    " same size has other documents, or keeps another.",
    "sets": "A set is a cluster of the run. Sets may overlap.",
}

EXAMPLES = f"""
    SELECT doc_id, cause, kept_before, kept_after, duplicate_of_before, duplicate_of_after
    FROM (SELECT c.*, row_number() OVER (PARTITION BY cause ORDER BY doc_id) AS turn
          FROM changes AS c WHERE cause IS NOT NULL) AS placed
    WHERE turn <= {EACH} ORDER BY cause, doc_id
"""  # noqa: S608 - a number

LARGEST = """
    SELECT name, change, before, after, came, went
    FROM (SELECT g.*, row_number() OVER (PARTITION BY change ORDER BY came + went DESC, name) AS turn
          FROM {table} AS g WHERE greatest(before, after) > 1) AS placed
    WHERE turn <= {most} ORDER BY change, came + went DESC, name
"""

Row = Mapping[str, Any]

BODY = """<div class="hero"><h1>{headline}</h1>
<p class="lead">From <bdi>{before}</bdi> to <bdi>{after}</bdi>.</p></div>
{settings}
<dl class="numbers">{numbers}</dl>
<h2 id="causes">Verdicts that changed, by cause</h2>
{causes}
{groups}"""

LINKS = (Link("#causes", "Causes"), Link("#families", "Families"), Link("#sets", "Sets"))


class Changes(NamedTuple):
    """What is shown of a diff, each in order."""

    documents: list[dict[str, Any]]
    """The first documents of each cause."""

    groups: dict[str, list[dict[str, Any]]]
    """The families, and the sets, of each kind of change to and from which most documents moved."""


def choose_changes(engine: Engine) -> Changes:
    """Choose what is shown; the engine has the tables of a diff."""
    groups = {name: engine.sql(LARGEST.format(table=table, most=EACH)).to_pylist() for name, _, table in GROUPS}
    return Changes(engine.sql(EXAMPLES).to_pylist(), groups)


def draw_changes(shown: Changes, difference: Mapping[str, Any], why: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        difference: the runs and the counts of a diff, as `--json` prints them.
        why: what each cause means.
    """
    counts = difference["counts"]
    verdicts = f"<strong>{counts['verdicts']:,}</strong> {'verdict' if counts['verdicts'] == 1 else 'verdicts'} changed"
    body = BODY.format(
        headline=verdicts if difference["differs"] else "Nothing changed",
        before=escape(difference["before"]),
        after=escape(difference["after"]),
        settings=_draw_settings(difference),
        numbers="".join(draw_number(name, f"{number:,}", note) for name, number, note in _list_numbers(difference)),
        causes=_draw_causes(shown.documents, difference["causes"], why),
        groups="".join(
            _draw_groups(name, heading, shown.groups[name], difference[name], table) for name, heading, table in GROUPS
        ),
    )
    return draw_page("What changed", body, LINKS, label="diff")


def _draw_settings(difference: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{row['name']} {row['before']} → {row['after']}" for row in difference["versions"])
    noted = f'<p class="note">Versions: {escape(versions)}</p>' if versions else ""
    rows = [
        [f"<code>{escape(row['name'])}</code>", _spell(row["before"]), _spell(row["after"])]
        for row in difference["settings"]
    ]
    if not rows:
        return f'<div class="card"><p>No setting differs.</p>{noted}</div>'
    head = ("Setting", "Before", "After")
    more = f"<details><summary>{len(rows) - FEW:,} more</summary>{_table('More settings', head, rows[FEW:])}</details>"
    listed = _table("Settings that differ", head, rows[:FEW]) + (more if len(rows) > FEW else "")
    return f'<div class="card"><h2>Settings that differ</h2>{listed}{noted}</div>'


def _spell(value: object) -> str:
    return f"<code>{escape(as_text(value))}</code>"


def _list_numbers(difference: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    counts = difference["counts"]
    return [
        ("documents added", counts["added"], ""),
        ("documents gone", counts["gone"], ""),
        ("with another text", counts["text"], ""),
        ("verdicts changed", counts["verdicts"],
         (f"{counts['now_kept']:,} now kept, {counts['now_removed']:,} now removed,"
          f" {counts['other_original']:,} for another document")),
        ("pairs won", counts["won"], ""),
        ("pairs lost", counts["lost"], ""),
        *(
            (f"{name} changed", sum(difference[name].values()), _list_kinds(difference[name], crowded))
            for (name, *_), crowded in zip(GROUPS, (0, counts["crowded_sets"]), strict=True)
        ),
    ]  # fmt: skip


def _list_kinds(kinds: Mapping[str, int], crowded: int) -> str:
    listed = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kind in kinds)
    return f"{listed}; {crowded:,} of these overlap too many to be compared" if crowded else listed


def _draw_causes(documents: Sequence[Row], causes: Mapping[str, int], why: Mapping[str, str]) -> str:
    most = max(causes.values(), default=1)
    drawn = []
    for cause, n in causes.items():
        rows = [
            [f"<bdi>{escape(row['doc_id'])}</bdi>", _verdict(row, "before"), _verdict(row, "after")]
            for row in documents if row["cause"] == cause
        ]  # fmt: skip
        rest = (
            f'<p class="note">and {n - len(rows):,} more: the table <code>changes</code></p>' if n > len(rows) else ""
        )
        drawn.append(
            f'<section class="card"><h3>{n:,} · {escape(why[cause][:1].upper() + why[cause][1:])}</h3>'
            f'<svg class="measure" aria-hidden="true"><rect width="{100 * n / most:.1f}%" height="100%"/></svg>'
            f"<details><summary>{'The document' if n == 1 else 'Documents'}</summary>"
            f"{_table(f'Documents: {why[cause]}', ('Document', 'Before', 'After'), rows)}{rest}</details></section>\n"
        )
    return "".join(drawn) or '<p class="empty">None.</p>'


def _verdict(row: Row, when: str) -> str:
    if row[f"kept_{when}"]:
        return '<span class="chip kept">kept</span>'
    of = row[f"duplicate_of_{when}"]
    named = "" if of is None else f" for <bdi>{escape(of)}</bdi>"
    return f'<span class="chip removed">removed</span>{named}'


def _draw_groups(name: str, heading: str, rows: Sequence[Row], counts: Mapping[str, int], table: str) -> str:
    drawn = []
    for kind, title in KINDS.items():
        of_kind = [row for row in rows if row["change"] == kind]
        if not of_kind:
            continue
        more = counts[kind] - len(of_kind)
        rest = f'<p class="note">and {more:,} more: the table <code>{table}</code></p>' if more else ""
        cells = [
            [f"<bdi>{escape(row['name'])}</bdi>", *(f"{row[one]:,}" for one in ("before", "after", "came", "went"))]
            for row in of_kind
        ]
        listed = _table(f"{heading}: {title}", ("Name", "Before", "After", "Came", "Went"), cells, numbers=True)
        drawn.append(f'<section class="card"><h3>{title}: {counts[kind]:,}</h3>{listed}{rest}</section>\n')
    body = "".join(drawn) or '<p class="empty">None of two documents or more changed.</p>'
    return f'<h2 id="{name}">{heading}</h2>\n<p class="note">{ABOUT[name]}</p>\n<div class="two">{body}</div>\n'


def _table(caption: str, head: Iterable[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    kind = ' class="number"' if numbers else ""
    first, *others = head
    heads = f'<th scope="col">{first}</th>' + "".join(f'<th scope="col"{kind}>{name}</th>' for name in others)
    body = "".join(
        f'<tr><th scope="row">{cells[0]}</th>' + "".join(f"<td{kind}>{cell}</td>" for cell in cells[1:]) + "</tr>"
        for cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="changes">'
        f'<caption class="hidden-text">{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )
