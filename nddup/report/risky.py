"""Removals to be judged by a person: drawn at random from strata by what may be wrong with the document that stays.

    ask_strata    tables of a run      -> the number of removals in each stratum
    draw_risky    these, a seed        -> removals with both documents, in an order that may be left off anywhere
    show_risky, risky_lines            -> for the terminal, and a CSV file that takes the judgements

Every removal in favour of a document is in one stratum, the first of `RISKS` that holds for it, so that a rate over all
of them can be told from judgements of a few. The same seed draws the same removals, with either engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nddup.engines.engine import FinishedRun
from nddup.errors import NddupError
from nddup.ground.shown import csv_line, one_line
from nddup.report.borderline import decisive_of
from nddup.settings.schema import SOURCE_COLUMN, Config

RISKS = {
    "label": "a column of keep.ledger differs",
    "score": "the kept one has the lower score",
    "shorter": "the kept one is shorter",
    "close": "just above the threshold",
    "source": "of another file",
    "older": "the kept one is older",
    "newer": "the kept one is newer",
    "rest": "none of these",
}
"""What may be wrong, the gravest first."""

CLOSE = 0.05
"""A resemblance that exceeds the threshold by less is just above it."""

COLUMNS = (
    "doc_id", "duplicate_of", "judgement", "stratum", "risks", "resemblance", "lost", "tokens", "kept_tokens",
    "source", "record", "url", "kept_source", "kept_record", "kept_url",
)  # fmt: skip
"""The columns of the CSV; `judgement` is empty."""

TOLD = """
    SELECT r.doc_id, r.duplicate_of, r.resemblance, r.lost, d.n_tokens AS tokens, o.n_tokens AS kept_tokens, d.source,
           d.record, d.url, o.source AS kept_source, o.record AS kept_record, o.url AS kept_url, {holds}
    FROM keep AS r JOIN documents AS d ON r.doc_id = d.doc_id JOIN documents AS o ON r.duplicate_of = o.doc_id
    WHERE NOT r.kept
"""

STRATA = "SELECT stratum, count(*) AS n FROM ({placed}) AS p GROUP BY stratum"

DRAWN = """
    SELECT * FROM (
        SELECT p.*, row_number() OVER (PARTITION BY stratum ORDER BY md5(concat(doc_id, ' {seed}')), doc_id) AS turn
        FROM ({placed}) AS p
    ) AS drawn WHERE turn <= CASE stratum {most} ELSE 0 END ORDER BY turn, md5(concat(doc_id, ' {seed}')), doc_id
"""

OF_JUDGED = """
    SELECT p.doc_id, p.stratum FROM ({placed}) AS p
    JOIN wanted AS w ON p.doc_id = w.doc_id AND p.duplicate_of = w.duplicate_of
"""
"""The strata of the removals in wanted(doc_id, duplicate_of)."""


def place_removals(run: FinishedRun) -> str:
    """Return the SELECT of all removals, each with its `stratum` and the `risks` that hold."""
    from nddup.settings.load import read_stored  # noqa: PLC0415 - loads all settings

    config = read_stored(run.metrics.settings, origin="metrics.json")
    told = TOLD.format(holds=", ".join(f"{text} AS is_{name}" for name, text in _conditions(config).items()))
    held = [f"CASE WHEN is_{name} THEN '{name}' END" for name in RISKS if name != "rest"]
    risks = f"concat_ws(' ', {', '.join(held)})"
    stratum = f"coalesce({', '.join(held)}, 'rest')"
    return f"SELECT t.*, {stratum} AS stratum, {risks} AS risks FROM ({told}) AS t"  # noqa: S608 - own names


def _conditions(config: Config) -> dict[str, str]:
    """Return the SQL of each risk over a removed document `d`, the kept one `o` and their row `r` of `keep`."""
    keep, decisive = config.keep, decisive_of({"pairs": config.pairs.model_dump()})
    labels = [
        f"element_at({{}}.policy, {keep.read.index(name) + 1})" for name in keep.ledger or () if name != SOURCE_COLUMN
    ]
    scores = [
        (f"try_cast(element_at({{}}.policy, {keep.read.index(column.path) + 1}) AS DOUBLE)", column.is_descending)
        for column in keep.order.read
        if not column.listed
    ]
    differ = [_differ(text.format("d"), text.format("o")) for text in labels]
    worse = [f"{text.format('o')} {'<' if down else '>'} {text.format('d')}" for text, down in scores]
    is_close = "false"
    if decisive is not None and decisive.name == "resemblance":
        is_close = f"r.resemblance < {decisive.threshold + CLOSE!r}"
    found = {
        "label": " OR ".join(differ),
        "score": " OR ".join(worse),
        "shorter": "o.n_tokens < d.n_tokens",
        "close": is_close,
        "source": "o.source <> d.source",
        "older": "o.date < d.date",
        "newer": "o.date > d.date",
    }
    return {name: f"coalesce({text or 'false'}, false)" for name, text in found.items()}


def _differ(one: str, other: str) -> str:
    return f"coalesce({one} <> {other}, ({one} IS NULL) <> ({other} IS NULL))"


def ask_strata(run: FinishedRun) -> dict[str, int]:
    """Return the number of removals in each stratum that has any, in the order of `RISKS`."""
    counts = {row["stratum"]: row["n"] for row in run.sql(STRATA.format(placed=place_removals(run))).to_pylist()}
    return {name: counts[name] for name in RISKS if name in counts}


def share_out(strata: Mapping[str, int], number: int) -> dict[str, int]:
    """Return how many to draw of each stratum: equal shares, and what a small one lacks goes to the others.

    Example:
        >>> share_out({"label": 2, "shorter": 100, "rest": 100}, 11)
        {'label': 2, 'shorter': 5, 'rest': 4}
    """
    drawn, left = dict.fromkeys(strata, 0), min(number, sum(strata.values()))
    while left:
        open_ones = [name for name in strata if drawn[name] < strata[name]][:left]
        each = max(1, min(left // len(open_ones), *(strata[name] - drawn[name] for name in open_ones)))
        for name in open_ones:
            drawn[name] += each
        left -= each * len(open_ones)
    return drawn


def draw_risky(run: FinishedRun, number: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw removals, at most `number`: rows of `COLUMNS`, one of each stratum in turn.

    Cost: a join of the removed with their kept documents, sorted within each stratum.
    """
    drawn = share_out(ask_strata(run), number)
    if not drawn:
        return []
    most = " ".join(f"WHEN '{name}' THEN {count}" for name, count in drawn.items())
    rows = run.sql(DRAWN.format(placed=place_removals(run), seed=seed, most=most)).to_pylist()
    return [{name: row.get(name) for name in COLUMNS} for row in rows]


def show_risky(run: FinishedRun, number: int, seed: int = 0) -> str:
    """Return the strata, and the drawn removals."""
    strata, rows = ask_strata(run), draw_risky(run, number, seed)
    if not rows:
        raise NddupError(f"--risky: {run.path} removed no document for another")
    drawn = share_out(strata, number)
    lines = [f"removals by what may be wrong, {len(rows):,} of {sum(strata.values()):,} drawn"]
    lines += [f"  {strata[name]:>9,}  {drawn[name]:>6,}  {name:<8} {RISKS[name]}" for name in strata]
    lines += ["", "  stratum   like    removed, kept"]
    lines += [_spell(row) for row in rows]
    return "\n".join([*lines, f"  side by side: nddup report {one_line(run.path)} --risky {number}", ""])


def _spell(row: Mapping[str, Any]) -> str:
    like = "-" if row["resemblance"] is None else f"{row['resemblance']:.3f}"
    return f"  {row['stratum']:<8}  {like:>5}  {one_line(row['doc_id'])}  {one_line(row['duplicate_of'])}"


def risky_lines(run: FinishedRun, number: int, seed: int = 0) -> Iterator[str]:
    """Yield the drawn removals as lines of a CSV file, the header first."""
    yield csv_line(COLUMNS)
    for row in draw_risky(run, number, seed):
        yield csv_line(list(row.values()))


def list_ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of all documents of the drawn removals, once each."""
    return list(dict.fromkeys(str(row[name]) for row in rows for name in ("doc_id", "duplicate_of")))
