"""What a person should look at, as lists and pages of a run.

borderline     the pairs closest to the threshold, for whoever wants to set it, with both texts of each
risky          removals drawn at random from strata by what may be wrong with the document that stays
disagreements  families whose documents have different values in a column that the run stores
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.engines.engine import Engine, FinishedRun
from nddup.errors import NddupError
from nddup.ground.shown import counted, csv_line, one_line, spell_share
from nddup.matching.measures import MEASURES
from nddup.report.frame import Link, draw_page
from nddup.settings.schema import SOURCE_COLUMN, Config

MOST_WORDS = 1_000
"""Maximum number of words of each text that are shown and compared, in a millisecond: nobody would read more."""

_BOX = "flex:1;min-width:16em;max-height:24em;overflow:auto;border:1px solid;padding:6px;white-space:normal"

SHOWN = 20
"""Number of pairs on the page, whose texts a run stores."""

EACH = 100
"""Rows read for each pair wanted: many are of the same two groups, or of one document and many others."""

CLOSEST = """
    SELECT n.doc_a, n.doc_b, n.measured, a.group AS group_a, b.group AS group_b, a.source AS source_a,
           b.source AS source_b, a.content_fingerprint AS content_a, b.content_fingerprint AS content_b,
           a.record_type AS type_a, b.record_type AS type_b
    FROM (SELECT p.doc_a, p.doc_b, CAST({value} AS DOUBLE) AS measured FROM {pairs} AS p WHERE {value} IS NOT NULL
          ORDER BY measured, p.doc_a, p.doc_b LIMIT {rows:d}) AS n
    JOIN documents AS a ON n.doc_a = a.doc_id JOIN documents AS b ON n.doc_b = b.doc_id
    ORDER BY n.measured, n.doc_a, n.doc_b
"""

TEXTS = "SELECT t.doc_id, t.text FROM texts AS t JOIN wanted AS w ON t.doc_id = w.doc_id"

BODY = """<div class="hero"><h1>{heading}</h1>
<p class="lead">The run asks for {name} of at least {threshold:g}; the values here are {how}.</p></div>
<p class="muted">Would you call the texts of a pair the same? If not, raise the threshold; if all of them are, make a
run with a lower one, and look again. No document stands here twice, as far as there are others.</p>
{pairs}"""

LINKS = (Link("index.html", "Overview"),)


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

RISKY_COLUMNS = (
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


LARGEST = 10
"""Families that are printed."""

EACH_VALUES = 5
"""Values of a family that are printed."""

DISAGREEMENT_COLUMNS = (
    "family", "documents", "doc_id", "value", "kept", "reason", "resemblance", "lost", "source", "record", "url",
)  # fmt: skip
"""The columns of the CSV; `family` is the kept document."""

VALUED = """
    SELECT CASE WHEN k.kept THEN k.doc_id ELSE k.duplicate_of END AS family, {value} AS value, k.doc_id, k.kept,
           k.reason, k.resemblance, k.lost, d.source, d.record, d.url
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id WHERE k.kept OR k.duplicate_of IS NOT NULL
"""

DIFFERING = """
    SELECT family, count(*) AS documents, count(DISTINCT value) + max(CASE WHEN value IS NULL THEN 1 ELSE 0 END) AS many
    FROM ({valued}) AS v GROUP BY family
    HAVING count(DISTINCT value) + max(CASE WHEN value IS NULL THEN 1 ELSE 0 END) > 1
"""

COUNTS = """
    SELECT count(*) AS families, CAST(coalesce(sum(documents), 0) AS BIGINT) AS documents FROM ({differing}) AS f
"""

FAMILIES = "SELECT count(DISTINCT duplicate_of) AS n FROM keep"

FIRST_VALUES = f"""
    SELECT f.family, f.documents, f.many, v.value, v.n FROM (
        SELECT * FROM ({{differing}}) AS g ORDER BY documents DESC, family LIMIT {LARGEST}
    ) AS f JOIN (
        SELECT family, value, count(*) AS n,
               row_number() OVER (PARTITION BY family ORDER BY count(*) DESC, value) AS turn
        FROM ({{valued}}) AS w GROUP BY family, value
    ) AS v ON f.family = v.family WHERE v.turn <= {EACH_VALUES} ORDER BY f.documents DESC, f.family, v.turn
"""  # noqa: S608 - numbers

ROWS = """
    SELECT v.family, f.documents, v.doc_id, v.value, v.kept, v.reason, v.resemblance, v.lost, v.source, v.record, v.url
    FROM ({valued}) AS v JOIN ({differing}) AS f ON v.family = f.family
    ORDER BY f.documents DESC, v.family, v.kept DESC, v.doc_id
"""
"""Rows of `DISAGREEMENT_COLUMNS`, the largest families first."""


def side_by_side(names: tuple[str, str], texts: tuple[str, str]) -> str:
    """Return both texts beside each other as HTML that needs no style sheet, as in a notebook."""
    columns = [
        f'<div style="{_BOX}"><strong>{escape(name)}</strong><br>{text}</div>'
        for name, text in zip(names, mark_both(texts), strict=True)
    ]
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(columns)}</div>'


def mark_both(texts: tuple[str, str]) -> tuple[str, str]:
    """Return both texts as HTML, with the words outside their longest common subsequence marked; case is ignored.

    A text longer than `MOST_WORDS` words is cut there, with a note.
    """
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most commands show no two texts

    words = [text.split() for text in texts]
    cut = [row[:MOST_WORDS] for row in words]
    first, second = ([word.casefold() for word in row] for row in cut)
    blocks = LCSseq.opcodes(first, second).as_matching_blocks()
    marked = []
    for side in range(2):
        common = [(block[side], block[side] + block.size) for block in blocks]
        more = len(words[side]) - len(cut[side])
        rest = f" <em>… and {more:,} more words, not compared</em>" if more else ""
        marked.append(f"{_marked(cut[side], common)}{rest}")
    return marked[0], marked[1]


def _marked(words: list[str], common: list[tuple[int, int]]) -> str:
    """Return words with those outside the common runs (start, end) marked; the last run is empty, at the end."""
    parts = []
    for (_, end), (start, stop) in pairwise([(0, 0), *common]):
        if end < start:
            parts.append(f"<mark>{escape(' '.join(words[end:start]))}</mark>")
        if start < stop:
            parts.append(escape(" ".join(words[start:stop])))
    return " ".join(parts)


class Decisive(NamedTuple):
    """The value that a run compares with its threshold: its name, its SQL over a row `p` of `pairs`, the threshold.

    `pairs` is the table, or a SELECT of its rows with more columns.
    """

    name: str
    value: str
    threshold: float
    pairs: str = "pairs"


class Close(NamedTuple):
    """A pair near the threshold: two documents that stand for their groups of equal sketches, and where they are.

    The types are those of captures: the text of a `revisit` is elsewhere.
    """

    doc_a: str
    doc_b: str
    measured: float
    source_a: str
    source_b: str
    content_a: bytes
    content_b: bytes
    type_a: str | None
    type_b: str | None


def decisive_of(settings: Mapping[str, Any]) -> Decisive | None:
    """Return the value that a run compares with its threshold; None for a share of the overlap, which `pairs` lacks."""
    pairs = settings["pairs"]
    if pairs.get("confirm", "none") == "edit":
        return Decisive("edit", "p.edit", pairs["edit_threshold"])
    measure = MEASURES[pairs["measure"]]
    value = "p.overlap" if measure.takes_count and isinstance(pairs["threshold"], int) else measure.value
    return Decisive(measure.name, value, pairs["threshold"]) if value else None


def find_closest(engine: Engine, decisive: Decisive, number: int) -> list[Close]:
    """Return the pairs that reach the threshold by the smallest margin, spread over documents.

    One stands for all pairs of two groups of equal sketches. A group that stands in an earlier pair comes again only
    where there are too few others among the rows read.

    Args:
        engine: with the tables `pairs` and `documents`, of a finished run or of one that is being made.
        decisive: the value that is compared with the threshold.

    Cost: a pass over `pairs`; another where the first `EACH * number` rows are of fewer pairs of groups.
    """
    rows = EACH * number
    while True:
        nearest = engine.sql(CLOSEST.format(value=decisive.value, pairs=decisive.pairs, rows=rows)).to_pylist()
        of_groups: dict[frozenset[str], Close] = {}
        for row in nearest:
            groups = frozenset((row.pop("group_a"), row.pop("group_b")))
            if len(groups) > 1:
                of_groups.setdefault(groups, Close(**row))
        if len(of_groups) >= number or len(nearest) < rows:
            return spread(of_groups, number)
        rows *= EACH


def spread(of_groups: Mapping[frozenset[str], Close], number: int) -> list[Close]:
    """Choose pairs, nearest first, that share no group; then, if these are too few, the nearest others."""
    seen: set[str] = set()
    apart, others = list[Close](), list[Close]()
    for groups, close in of_groups.items():
        if groups & seen:
            others.append(close)
        else:
            apart.append(close)
            seen |= groups
    return sorted([*apart, *others][:number], key=lambda one: (one.measured, one.doc_a, one.doc_b))


def is_resemblance_exact(settings: Mapping[str, Any]) -> bool:
    """Return whether the resemblances of a run are of all shingles of both texts; else sketches estimate them."""
    return bool(settings["pairs"].get("confirm", "none") == "resemblance" or settings["sketch"]["kind"] == "whole")


def draw_borderline(run: FinishedRun) -> str | None:
    """Return the page as HTML; None if `pairs` does not hold the run's measure."""
    decisive = decisive_of(run.metrics.settings)
    if decisive is None:
        return None
    closest = find_closest(run, decisive, SHOWN)
    names = sorted({name for one in closest for name in (one.doc_a, one.doc_b)})
    wanted = pa.table({"doc_id": pa.array(names, pa.string())})
    rows = run.sql(TEXTS, wanted=wanted).to_pylist() if run.holds("texts") else []
    texts = {row["doc_id"]: row["text"] for row in rows}
    pairs = "".join(_draw(one, texts) for one in closest)
    is_estimate = decisive.name == "containment" or (
        decisive.name == "resemblance" and not is_resemblance_exact(run.metrics.settings)
    )
    body = BODY.format(
        heading="The pairs nearest to the threshold",
        name=decisive.name,
        threshold=decisive.threshold,
        how="estimated from the sketches" if is_estimate else "exact",
        pairs=pairs or '<p class="empty">The run has no pair of different sketches.</p>',
    )
    return draw_page("Nearest to the threshold", body, LINKS, label="nearest pairs", sheet="assets/report.css")


def _draw(close: Close, texts: Mapping[str, str]) -> str:
    names = close.doc_a, close.doc_b
    heading = f'<h2 class="measured">{spell_share(close.measured)}</h2>'
    if not texts.keys() >= set(names):
        named = " and ".join(f"<bdi>{escape(name)}</bdi>" for name in names)
        return f'<section class="card">{heading}<p>The texts of {named} were not stored.</p></section>\n'
    cells = [
        f'<div class="cell"><b><bdi>{escape(name)}</bdi></b><div class="beside-text" tabindex="0" role="region"'
        f' aria-label="Text of {escape(name)}">{text}</div></div>'
        for name, text in zip(names, mark_both((texts[names[0]], texts[names[1]])), strict=True)
    ]
    return f'<section class="card compare">{heading}<div class="pair-row">{"".join(cells)}</div></section>\n'


def place_removals(run: FinishedRun) -> str:
    """Return the SELECT of all removals, each with its `stratum` and the `risks` that hold."""
    from nddup.settings.load import read_stored  # noqa: PLC0415 - loads all settings

    config = read_stored(run.metrics.settings, origin="metrics.json")
    removals = TOLD.format(holds=", ".join(f"{text} AS is_{name}" for name, text in _conditions(config).items()))
    cases = [f"CASE WHEN is_{name} THEN '{name}' END" for name in RISKS if name != "rest"]
    risks = f"concat_ws(' ', {', '.join(cases)})"
    stratum = f"coalesce({', '.join(cases)}, 'rest')"
    return f"SELECT t.*, {stratum} AS stratum, {risks} AS risks FROM ({removals}) AS t"  # noqa: S608 - own names


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
    conditions = {
        "label": " OR ".join(differ),
        "score": " OR ".join(worse),
        "shorter": "o.n_tokens < d.n_tokens",
        "close": is_close,
        "source": "o.source <> d.source",
        "older": "o.date < d.date",
        "newer": "o.date > d.date",
    }
    return {name: f"coalesce({text or 'false'}, false)" for name, text in conditions.items()}


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
    """Draw removals, at most `number`: rows of `RISKY_COLUMNS`, one of each stratum in turn.

    Cost: a join of the removed with their kept documents, sorted within each stratum.
    """
    drawn = share_out(ask_strata(run), number)
    if not drawn:
        return []
    most = " ".join(f"WHEN '{name}' THEN {count}" for name, count in drawn.items())
    rows = run.sql(DRAWN.format(placed=place_removals(run), seed=seed, most=most)).to_pylist()
    return [{name: row.get(name) for name in RISKY_COLUMNS} for row in rows]


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
    names = f"{one_line(row['doc_id'])}  {one_line(row['duplicate_of'])}"
    return f"  {row['stratum']:<8}  {spell_share(row['resemblance']):>5}  {names}"


def risky_lines(run: FinishedRun, number: int, seed: int = 0) -> Iterator[str]:
    """Yield the drawn removals as lines of a CSV file, the header first."""
    yield csv_line(RISKY_COLUMNS)
    for row in draw_risky(run, number, seed):
        yield csv_line(list(row.values()))


def list_ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of all documents of the drawn removals, once each."""
    return list(dict.fromkeys(str(row[name]) for row in rows for name in ("doc_id", "duplicate_of")))


def ask_disagreements(run: FinishedRun) -> list[dict[str, Any]] | None:
    """Return for each column of `keep.ledger` what a report shows; None for a run without any.

    Returns:
        `column`; `families` that differ and their `documents`; the `largest` of these, as `first_disagreements`.
    """
    columns = run.metrics.settings["keep"].get("ledger")
    if not columns:
        return None
    disagreements = []
    for column in columns:
        counts = run.sql(COUNTS.format(**_asked(run, column))).to_pylist()[0]
        disagreements.append({"column": column, **counts, "largest": first_disagreements(run, column)})
    return disagreements


def show_disagreements(run: FinishedRun, column: str) -> str:
    """Return how many families differ in a column, and the largest with their values.

    Raises:
        NddupError: if the run does not store the column.
    """
    asked = _asked(run, column)
    counts = run.sql(COUNTS.format(**asked)).to_pylist()[0]
    families = run.sql(FAMILIES).to_pylist()[0]["n"]
    text = f"{counts['families']:,} of {families:,} families of more than one document"
    lines = [f"{text} differ in {one_line(column)}, with {counted(counts['documents'], 'document')} together"]
    lines += [spell_family(family) for family in first_disagreements(run, column)]
    lines += ["  all of them: --csv"] if counts["families"] else []
    return "\n".join([*lines, ""])


def first_disagreements(run: FinishedRun, column: str) -> list[dict[str, Any]]:
    """Return the largest families that differ: `family`, `documents`, `many` values, and the first `values`."""
    families: dict[str, dict[str, Any]] = {}
    for row in run.sql(FIRST_VALUES.format(**_asked(run, column))).to_pylist():
        family = {name: row[name] for name in ("family", "documents", "many")} | {"values": []}
        values: list[Any] = families.setdefault(row["family"], family)["values"]
        values.append({"value": row["value"], "documents": row["n"]})
    return list(families.values())


def spell_family(family: dict[str, Any]) -> str:
    """Return a family in one line."""
    values = [f"{spell_value(one['value'])}: {one['documents']:,}" for one in family["values"]]
    more = [f"… {counted(family['many'] - len(values), 'more value')}"] if family["many"] > len(values) else []
    return f"  {family['documents']:>9,}  {one_line(family['family'])}  {', '.join([*values, *more])}"


def spell_value(value: str | None) -> str:
    """Return a value in one line, a missing one as a dash."""
    return "–" if value is None else one_line(value)


def disagreement_lines(run: FinishedRun, column: str) -> Iterator[str]:
    """Yield the documents of the families that differ as lines of a CSV file, the header first.

    Cost: as `show.removed_lines`.

    Raises:
        NddupError: if the run does not store the column.
    """
    text = ROWS.format(**_asked(run, column))
    yield csv_line(DISAGREEMENT_COLUMNS)
    for row in run.rows(text):
        yield csv_line(row)


def _asked(run: FinishedRun, column: str) -> dict[str, str]:
    from nddup.settings.load import read_stored  # noqa: PLC0415 - loads all settings

    keep = read_stored(run.metrics.settings, origin="metrics.json").keep
    if column not in (*keep.read, SOURCE_COLUMN):
        there = f"; it stores {', '.join(keep.read)}" if keep.read else ""
        raise NddupError(
            f"--disagree {column}: {run.path} does not store this column{there}; name it in keep.ledger and run again"
        )
    value = "d.source" if column == SOURCE_COLUMN else f"element_at(d.policy, {keep.read.index(column) + 1})"
    valued = VALUED.format(value=value)
    return {"valued": valued, "differing": DIFFERING.format(valued=valued)}
