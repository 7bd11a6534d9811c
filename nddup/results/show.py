"""Results in the terminal: the summary of a run, one cluster, one document, two texts word by word.

The families that a run removed are one kept document each and the documents that it stands for; they are disjoint,
while the clusters, which may overlap, are the view inside.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nddup.engines.engine import FinishedRun, find_ids, text_places
from nddup.errors import ConfigError
from nddup.ground.metrics import RunMetrics
from nddup.ground.shown import (
    SPELLINGS,
    counted,
    csv_line,
    drop_login,
    one_line,
    shorten,
    spell_lost,
    spell_share,
)
from nddup.mining.modes import MEANINGS, MODES
from nddup.report.for_review import Decisive, decisive_of, find_closest
from nddup.report.summary import headline, notes
from nddup.results.opening import read_whole_texts

WIDTH = 76
INDENT = "\n" + 39 * " "
"""What stands before the second line of a remark."""

LARGEST = 10
SHOWN_IDS = 20
ROOM = 12
"""The least characters of an address that are worth showing."""


LARGEST_CLUSTERS = f"""
    SELECT c.cluster_id, c.size, c.support, slice(c.members, 1, 1) AS members, f.connected
    FROM clusters AS c JOIN (
        SELECT cluster_id, connected FROM (
            SELECT cluster_id, size, count(*) OVER (PARTITION BY component) - 1 AS connected,
                   row_number() OVER (PARTITION BY component ORDER BY size DESC, cluster_id) AS place
            FROM clusters
        ) AS placed WHERE place = 1 ORDER BY size DESC, cluster_id LIMIT {LARGEST}
    ) AS f ON c.cluster_id = f.cluster_id ORDER BY c.size DESC, c.cluster_id
"""  # noqa: S608 - a number
"""The largest of each connected group of clusters, with the number of others in it."""

ONE_CLUSTER = """
    SELECT c.cluster_id, c.size, c.support, c.component, c.coverage
    FROM clusters AS c JOIN wanted AS w ON c.cluster_id = w.id
"""
FIRST_MEMBERS = f"""
    SELECT m.doc_id, m.representative, d.url
    FROM (SELECT members.doc_id, members.representative
          FROM members JOIN wanted AS w ON members.cluster_id = w.id
          ORDER BY members.doc_id LIMIT {SHOWN_IDS}) AS m
    LEFT JOIN documents AS d ON m.doc_id = d.doc_id
    ORDER BY m.doc_id
"""  # noqa: S608

ONE_DOCUMENT = """
    SELECT d.doc_id, d.url, d.source, d.record, d.n_tokens, d.n_features, d.group, d.sketch, k.kept, k.duplicate_of,
           k.reason, k.lost
    FROM documents AS d JOIN wanted AS w ON d.doc_id = w.id LEFT JOIN keep AS k ON d.doc_id = k.doc_id
"""
STANDS_FOR = "SELECT count(*) AS n FROM keep AS k JOIN wanted AS w ON k.duplicate_of = w.id"
NEAR_PAIRS = """
    SELECT other, overlap, resemblance, star
    FROM (SELECT p.doc_b AS other, p.overlap, p.resemblance, p.star FROM pairs AS p JOIN wanted AS w ON p.doc_a = w.id
          UNION ALL
          SELECT p.doc_a AS other, p.overlap, p.resemblance, p.star FROM pairs AS p JOIN wanted AS w ON p.doc_b = w.id
         ) AS near
    ORDER BY resemblance DESC, other
"""
NEAREST = f"{NEAR_PAIRS} LIMIT {SHOWN_IDS + 1}"
OWN_CLUSTERS = """
    SELECT c.cluster_id, c.size, c.support, c.coverage, m.representative
    FROM clusters AS c JOIN members AS m ON c.cluster_id = m.cluster_id JOIN wanted AS w ON m.doc_id = w.id
    ORDER BY c.size DESC, c.cluster_id
"""
LARGEST_OWN_CLUSTERS = f"{OWN_CLUSTERS} LIMIT {SHOWN_IDS}"
"""These queries are about the cluster or document in wanted(id), and run on both DuckDB and Spark."""


FIRST_REJECTS = """
    SELECT reason, source, record, detail
    FROM (SELECT reason, source, record, detail,
                 row_number() OVER (PARTITION BY reason ORDER BY source, record) AS place
          FROM rejects) AS ranked
    WHERE place = 1 ORDER BY reason
"""

EACH = 20
"""Removed documents listed of each family."""

REMOVED_HEADING = "    reason   like    lost  document"

REASONS_SAID = {
    "exact": "same content as", "equal": "same text as", "near": "near-duplicate of",
    "forced": "by keep.force, near-duplicate of",
}  # fmt: skip
"""What a reason of removal says of the kept document."""


COLUMNS = (
    "doc_id", "duplicate_of", "reason", "resemblance", "lost", "family", "source", "record", "url", "kept_source",
    "kept_record", "kept_url",
)  # fmt: skip
"""The columns of the CSV; `family` is the number of documents that `duplicate_of` stands for, itself among them."""

SIZES = """
    SELECT duplicate_of AS kept, count(*) + 1 AS documents, min(resemblance) AS least, max(lost) AS lost
    FROM keep WHERE duplicate_of IS NOT NULL GROUP BY duplicate_of
"""
"""The families: kept document, number of documents, the least resemblance to it, and the most that is lost."""

ALL_FAMILIES = f"""
    SELECT f.kept, f.documents, f.least, f.lost, d.url
    FROM ({SIZES}) AS f LEFT JOIN documents AS d ON f.kept = d.doc_id
    ORDER BY f.documents DESC, f.kept
"""  # noqa: S608 - the text above

LARGEST_FAMILIES = f"{ALL_FAMILIES} LIMIT {LARGEST}"

COUNT_FAMILIES = f"SELECT count(*) AS n FROM ({SIZES}) AS f"  # noqa: S608 - the text above

REASONS = "SELECT reason, count(*) AS n FROM keep WHERE NOT kept GROUP BY reason ORDER BY reason"

REMOVED = f"""
    SELECT k.doc_id, k.duplicate_of, k.reason, k.resemblance, k.lost, f.documents, d.source, d.record, d.url,
           o.source AS kept_source, o.record AS kept_record, o.url AS kept_url
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id LEFT JOIN ({SIZES}) AS f ON k.duplicate_of = f.kept
    LEFT JOIN documents AS o ON k.duplicate_of = o.doc_id
    WHERE NOT k.kept ORDER BY coalesce(f.documents, 0) DESC, k.duplicate_of, k.doc_id
"""  # noqa: S608 - the text above
"""Rows of `COLUMNS`: every removed document, those of the largest families first, forced ones without a family last."""

FIRST_REMOVED = f"""
    SELECT k.doc_id, k.duplicate_of, k.reason, k.resemblance, k.lost, k.place
    FROM (SELECT r.*, row_number() OVER (PARTITION BY r.duplicate_of ORDER BY r.doc_id) AS place
          FROM keep AS r JOIN wanted AS w ON r.duplicate_of = w.id) AS k
    WHERE k.place <= {EACH} ORDER BY k.duplicate_of, k.doc_id
"""  # noqa: S608 - a number
"""The first removed documents of each family in wanted(id)."""


BESIDE = 8
"""Common words that are printed before and after a difference."""

MOST_WORDS = 20_000
"""Words of each text that are compared."""


def first_rejects(run: FinishedRun) -> list[str]:
    """Return a sentence about the first reject of each reason; files that were not read have a note of their own."""
    sketch = run.metrics.stages.sketch
    rows = run.sql(FIRST_REJECTS).to_pylist() if sketch.rejected else []
    return [
        f"first {row['reason']}: {one_line(row['source'])}#{row['record']}"
        + (f": {shorten(one_line(row['detail']), WIDTH)}" if row["detail"] else "")
        for row in rows
        if not (row["reason"] in ("no records", "binary") and sketch.unread_files)
    ]


def summarise(metrics: RunMetrics, path: str, *, report: str | None = None, rejects: Sequence[str] = ()) -> str:
    """Return the table at the end of a run: numbers read, rejected, found and kept, and the folder of the results.

    Args:
        report: path of the report's page, if there is one.
        rejects: sentences of `first_rejects`, if the run can be opened.
    """
    body = "".join(
        f"  {line.name:<21}{line.number:>13,}   {line.note.replace(chr(10), INDENT)}".rstrip() + "\n"
        for line in headline(metrics)
    )
    text = "".join(f"  note: {one_line(note)}\n" for note in [*rejects, *notes(metrics)])
    rule = "─" * WIDTH + "\n"
    return f"{rule}{body}{rule}{text}  {metrics.seconds:.1f} s, results in {one_line(drop_login(path))}\n" + (
        f"  report: {one_line(drop_login(report))}\n" if report else ""
    )


def show_run(run: FinishedRun, *, cluster: str | None, doc: str | None, master: str | None = None) -> str:
    """Describe a finished run: the summary, the largest families and clusters, or one cluster, or one document.

    Raises:
        ConfigError: if there is no such cluster or document.
    """
    if cluster is not None:
        return _show_cluster(run, cluster, master=master)
    if doc is not None:
        return _show_document(run, doc)

    lines = [
        f"  {row['cluster_id']}  {row['size']:>9,}  {_ending((row['members'] or [''])[0] or '')}{_others(row)}"
        for row in run.sql(LARGEST_CLUSTERS).to_pylist()
    ]
    mode = MODES.get(run.metrics.settings["clusters"]["mode"], MODES["all"])
    sets = "the sets inside: every two documents of one are alike; the largest of each group"
    inside = f"clusters: each {mode.means}, the largest" if mode.means else sets
    heading = f"{inside}\n  {'cluster':<16}  {'documents':>9}  first document\n" if lines else ""
    families = "".join(f"{line}\n" for line in [*list_families(run), ""])
    report = f"{run.path}/report/index.html" if run.holds("report/index.html") else None
    summary = summarise(run.metrics, run.path, report=report, rejects=first_rejects(run))
    return f"{summary}\n{families.lstrip()}{heading}" + "\n".join(lines) + "\n"


def rows_of(run: FinishedRun, *, cluster: str | None, doc: str | None, borderline: int | None) -> dict[str, Any]:
    """Return the content of `show_run` or `show_borderline` as values for JSON.

    Returns:
        Of a cluster, its row and its first members; of a document, its row, its nearest pairs and its clusters; the
        pairs nearest to the threshold; else `metrics`, and the largest `families` and `clusters`.

    Raises:
        ConfigError: as `show_run` and `show_borderline`.
    """
    if cluster is not None:
        row = _find(run, ONE_CLUSTER, cluster, option="--cluster")
        del row["component"]
        return {"cluster_id": cluster, **row, "first_members": _ask(run, FIRST_MEMBERS, cluster)}
    if doc is not None:
        stored = _find(run, ONE_DOCUMENT, doc, option="--doc")
        doc = stored["doc_id"]
        del stored["group"], stored["sketch"]
        clusters = _ask(run, LARGEST_OWN_CLUSTERS, doc, "coverage", "representative")
        return {**stored, "near": _ask(run, NEAREST, doc, "star"), "clusters": clusters}
    if borderline is not None:
        decisive = _require_decisive(run)
        return {"measure": decisive.name, "threshold": decisive.threshold,
                "pairs": [one._asdict() for one in find_closest(run, decisive, borderline)]}  # fmt: skip
    largest = {"families": LARGEST_FAMILIES, "clusters": LARGEST_CLUSTERS}
    listed = {name: run.sql(text).to_pylist() for name, text in largest.items()}
    return {"path": run.path, "metrics": run.metrics.dump(), **listed}


def show_borderline(run: FinishedRun, number: int) -> str:
    """Return the pairs closest to the threshold, and the path of the page with their texts.

    Raises:
        ConfigError: if `pairs` does not hold the value that the run compared with its threshold.
    """
    decisive = _require_decisive(run)
    closest = find_closest(run, decisive, number)
    lines = [f"pairs nearest to the threshold: {decisive.name} at least {decisive.threshold:g}"]
    lines += [f"  {spell_share(one.measured):>11}  {one_line(one.doc_a)}  {one_line(one.doc_b)}" for one in closest]
    if run.holds("report/borderline.html"):
        lines.append(f"  their texts side by side: {one_line(drop_login(run.path))}/report/borderline.html")
    return "\n".join([*lines, ""])


def _require_decisive(run: FinishedRun) -> Decisive:
    decisive = decisive_of(run.metrics.settings)
    if decisive is None:
        raise ConfigError(f"--borderline: {run.path} compared a share of the overlap, which its pairs do not hold")
    return decisive


def _find(run: FinishedRun, question: str, name: str, *, option: str) -> dict[str, Any]:
    """Return the row of a cluster or document. Raises ConfigError if there is none; of documents it shows an id."""
    forms = (name, *(spelling(name) for spelling in SPELLINGS)) if option == "--doc" else (name,)
    rows = next(filter(None, (_ask(run, question, form) for form in dict.fromkeys(forms))), [])
    if not rows and option == "--cluster":
        raise ConfigError(f"--cluster {name}: no such cluster in {run.path}")
    if not rows:
        known = run.sql("SELECT min(doc_id) AS doc_id FROM documents").to_pylist()[0]["doc_id"]
        hint = f" (its ids are like {known})" if known is not None else ""
        raise ConfigError(f"--doc {name}: no such document in {run.path}{hint}")
    return rows[0]


def _show_cluster(run: FinishedRun, cluster: str, *, master: str | None) -> str:
    row, members = _find(run, ONE_CLUSTER, cluster, option="--cluster"), _ask(run, FIRST_MEMBERS, cluster)
    common = f"{counted(row['size'], 'document')}, {counted(row['support'], 'feature')} common to all"
    head = f"cluster {cluster}: {common}; {MEANINGS[row['coverage']]}"
    lines = [f"  {'*' if one['representative'] else ' '} {_named(one['doc_id'], one['url'], WIDTH)}" for one in members]
    more = [f"    … and {row['size'] - len(members):,} more"] if row["size"] > len(members) else []
    from nddup.results.formal_context import describe_extent  # noqa: PLC0415 - reads texts again

    shared = describe_extent(run, cluster, row["size"], master=master)
    return "\n".join([head, *lines, *more, "  * preferred by the keep policy", *shared, ""])


def _show_document(run: FinishedRun, doc: str) -> str:
    row = _find(run, ONE_DOCUMENT, doc, option="--doc")
    doc = row["doc_id"]
    size = f"{row['n_tokens']:,} tokens, {row['n_features']:,} features"
    lines = [
        one_line(f"document {doc}: {row['source']}#{row['record']}, {size}"),
        *([f"  url       {one_line(row['url'])}"] if row["url"] and row["url"] != doc else []),
        _outcome(run, row),
    ]
    pairs = _ask(run, NEAREST, doc)
    lines += ["  near      resemblance  common  document"] if pairs else []
    lines += [
        f"            {spell_share(one['resemblance']):>11}  {one['overlap']:>6,}  {one_line(one['other'])}"
        for one in pairs[:SHOWN_IDS]
    ]
    if len(pairs) > SHOWN_IDS:
        lines.append("            … and more")
    clusters = _ask(run, LARGEST_OWN_CLUSTERS, doc)
    lines += [f"  cluster   {one['cluster_id']}  of {counted(one['size'], 'document')}" for one in clusters]
    return "\n".join([*lines, ""])


def _outcome(run: FinishedRun, row: dict[str, Any]) -> str:
    if row["kept"]:
        stands = int(_ask(run, STANDS_FOR, row["doc_id"])[0]["n"])
        return f"  kept, stands for {counted(stands, 'other document')}" if stands else "  kept"
    if row["duplicate_of"] is None:
        return f"  removed   {row['reason']}"
    lost = "" if row["lost"] is None else f", {spell_lost(row['lost'])} of its shingles lost"
    return f"  removed   {REASONS_SAID[row['reason']]} {one_line(row['duplicate_of'])}{lost}"


def _ask(run: FinishedRun, question: str, name: str, *hidden: str) -> list[dict[str, Any]]:
    spelled = name.encode(errors="replace")
    ends = np.array([0, len(spelled)], np.int32)  # pa.array of Python objects would import pandas: 0.4 s
    ids = pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(spelled))
    rows = run.sql(question, wanted=pa.Table.from_arrays([ids], ["id"])).drop_columns(list(hidden))
    listed: list[dict[str, Any]] = rows.to_pylist()
    return listed


def _ending(doc_id: str, width: int = 34) -> str:
    """Return an id on one line; of a long one its end, which tells it from others."""
    text = one_line(doc_id)
    return text if len(text) <= width else f"…{text[1 - width :]}"


def removed_lines(run: FinishedRun) -> Iterator[str]:
    """Yield the removed documents as lines of a CSV file, the header first.

    Cost: sorts the removed documents; `keep` and `documents` are read once, `documents` without their sketches.
    """
    yield csv_line(COLUMNS)
    for row in run.rows(REMOVED):
        yield csv_line(row)


def list_families(run: FinishedRun) -> list[str]:
    """Return the heading and the largest families, a line each; nothing where no document was removed for another."""
    rows = run.sql(LARGEST_FAMILIES).to_pylist()
    if not rows:
        return []
    number = int(run.sql(COUNT_FAMILIES).column(0)[0].as_py())
    more = f", the {LARGEST} largest of {number:,}" if number > LARGEST else ""
    head = f"families: one kept document and those that it stands for{more}"
    return [head, "  documents  least alike    lost  kept", *(_family(row) for row in rows)]


def show_removed(run: FinishedRun) -> str:
    """Return the removals, by reason and by family: the largest families, with their first documents."""
    reasons = {row["reason"]: row["n"] for row in run.sql(REASONS).to_pylist()}
    removed = sum(reasons.values())
    by_reason = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    text = f"removed: {removed:,} of {counted(run.metrics.rows['documents'], 'document')}"
    lines = [f"{text} ({by_reason})" if removed else text]
    lines += ["each kept document, and below it those removed for it:", REMOVED_HEADING] if removed else []
    families = run.sql(LARGEST_FAMILIES)
    first: dict[str, list[dict[str, Any]]] = {}
    for row in run.sql(FIRST_REMOVED, wanted=families.select(["kept"]).rename_columns(["id"])).to_pylist():
        first.setdefault(row["duplicate_of"], []).append(row)
    for family in families.to_pylist():
        lines += ["", _named(family["kept"], family["url"], WIDTH)]
        lines += [_removed(row) for row in first[family["kept"]]]
        more = family["documents"] - 1 - len(first[family["kept"]])
        lines += [f"    … and {more:,} more"] if more else []
    lines += ["", f"all of them: nddup show {one_line(drop_login(run.path))} --removed --csv"] if removed else []
    return "\n".join([*lines, ""])


def _family(row: dict[str, Any]) -> str:
    named = _named(row["kept"], row["url"], 44)
    return f"  {row['documents']:>9,}  {spell_share(row['least']):>11}  {spell_lost(row['lost']):>6}  {named}"


def _others(row: dict[str, Any]) -> str:
    return f"  + {counted(row['connected'], 'set')}" if row["connected"] else ""


def _named(doc_id: str, url: str | None, width: int) -> str:
    name, left = one_line(doc_id), width - len(one_line(doc_id)) - 2
    if not url or url == doc_id or left < ROOM:
        return name
    address = one_line(url)
    return f"{name}  {address if len(address) <= left else '…' + address[1 - left :]}"


def _removed(row: dict[str, Any]) -> str:
    values = f"{row['reason']:<6}  {spell_share(row['resemblance']):>5}  {spell_lost(row['lost']):>6}"
    return f"    {values}  {one_line(row['doc_id'])}"


def compare_texts(run: FinishedRun, first: str, second: str, *, master: str | None) -> str:
    """Return the differences of two documents, whose texts are read again from the inputs.

    Raises:
        ConfigError: if a document is unknown, or both are the same.
        NddupError: if an input is gone or was changed since the run.

    Cost: one pass over the files of both.
    """
    known = find_ids(run, [first, second])
    for name in (first, second):
        if name not in known:
            raise ConfigError(f"--compare {name}: no such document in {run.path}")
    first, second = known[first], known[second]
    if first == second:
        raise ConfigError(f"--compare: expected two documents, got {first} twice")
    places = text_places(run, [first, second])
    texts = read_whole_texts(run.path, places, master=master)
    words = [texts[name].split() for name in (first, second)]
    head = [
        f"[-only here-] {one_line(first)}, {counted(len(words[0]), 'word')}",
        f"{{+only here+}} {one_line(second)}, {counted(len(words[1]), 'word')}",
    ]
    cut = max(map(len, words)) > MOST_WORDS
    note = [f"only the first {MOST_WORDS:,} words of each are compared"] if cut else []
    return "\n".join([*head, *note, "", *mark(words[0][:MOST_WORDS], words[1][:MOST_WORDS]), ""])


def mark(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return a line for each difference, with the words around it.

    Example:
        >>> mark("the old house by the sea".split(), "the new house by the sea".split())
        ['the [-old-] {+new+} house by the sea']
    """
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most commands compare no two texts

    lines: list[str] = []
    line: list[str] = []
    a = b = 0
    is_open = False  # whether the line has a difference
    for block in LCSseq.opcodes(first, second).as_matching_blocks():  # the last is empty, at the end of both
        only_a, only_b = one_line(" ".join(first[a : block.a])), one_line(" ".join(second[b : block.b]))
        line += [text for text, words in ((f"[-{only_a}-]", only_a), (f"{{+{only_b}+}}", only_b)) if words]
        is_open |= bool(only_a or only_b)
        a, b = block.a + block.size, block.b + block.size
        common = [one_line(word) for word in first[block.a : a]]
        is_last = (a, b) == (len(first), len(second))
        if is_open and (is_last or len(common) > 2 * BESIDE):
            lines.append(" ".join([*line, *common[:BESIDE], *(["…"] if len(common) > BESIDE else [])]))
            line, is_open = [], False
        if is_open or len(common) <= BESIDE:
            line += common
        else:
            line = ["…", *common[-BESIDE:]]
    return lines or ["the same words"]
