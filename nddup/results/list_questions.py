"""The queries of `nddup evaluate` over a run and a reference list, for both engines; and the file of such a list.

    entries                            the lines of the list: PAIRS or GROUPS of `nddup.reading.reference_lists`
    docs        --DOCS-->              doc_id, node: the node of a document is its `group`
    edges       --EDGES-->             near-duplicate groups of equal sketches, and how many pairs each stands for
    unlisted    --UNLISTED-->          nodes whose pairs among themselves need not be in `pairs`
    reference   --PAIRS_ONCE-->        each pair of the list once, or --GROUPS_AS_PAIRS--> each pair of its groups
    judged      --JUDGED-->            each pair of the list, with what the run has of it
    a path      --open_reference-->    ReferenceFile: the file, and the layout of its lines

A kept answer has the name on the left in later queries. The band width of a curve is written into the query.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from nddup.errors import ConfigError
from nddup.ground.shown import SPELLINGS
from nddup.reading.reference_lists import (
    DELIMITERS,
    LOOKED_AT,
    OWN,
    Kind,
    Layout,
    LayoutError,
    first_lines,
    guess_layout,
    read_lines,
    split_fields,
)
from nddup.reading.streams import compression_of, expand_head
from nddup.scanning.input_files import InputFile, Listing, list_asked
from nddup.storage.claim import FolderFiles

STEP = 100
"""Points per unit of the curve over the run's own resemblance: one every 1/100."""

DOCS = "SELECT d.doc_id, d.group AS node FROM documents AS d"

EDGES = """
    WITH ends AS (SELECT a.node AS a, b.node AS b, p.resemblance
                  FROM pairs AS p JOIN docs AS a ON p.doc_a = a.doc_id JOIN docs AS b ON p.doc_b = b.doc_id),
         folded AS (SELECT least(a, b) AS node_a, greatest(a, b) AS node_b, max(resemblance) AS resemblance
                    FROM ends GROUP BY least(a, b), greatest(a, b)),
         sizes AS (SELECT node, count(*) AS n FROM docs GROUP BY node)
    SELECT f.node_a, f.node_b, f.resemblance,
           CASE WHEN f.node_a = f.node_b THEN shiftright(x.n * (x.n - 1), 1) ELSE x.n * y.n END AS pairs
    FROM folded AS f JOIN sizes AS x ON f.node_a = x.node JOIN sizes AS y ON f.node_b = y.node
"""
"""Each edge once, node_a <= node_b; the two are equal for pairs within a node. `pairs`: number of document pairs.

Documents with equal sketches have the same near-duplicates. So the pairs of a run are *edges* between its groups of
equal sketches, and a star stands for all pairs of its groups."""

UNLISTED = """
    SELECT DISTINCT d.node, c.component AS family
    FROM clusters AS c JOIN members AS m ON c.cluster_id = m.cluster_id JOIN docs AS d ON m.doc_id = d.doc_id
    WHERE c.coverage = 'documents' AND NOT EXISTS (
        SELECT 1 FROM keep AS k JOIN docs AS s ON k.doc_id = s.doc_id
        WHERE coalesce(k.leader, k.kept) AND s.node = d.node)
"""
"""The nodes that do not lead in components given by leaders, and their component."""

FOUND = "SELECT CAST(coalesce(sum(pairs), 0) AS BIGINT) AS found FROM edges"

TOGETHER = "SELECT cluster_id AS name, doc_id AS item FROM members"
"""Memberships, for `kinds`: pairs of documents in a common cluster."""

DOCUMENTS_AMONG = "SELECT count(*) AS n FROM docs AS d JOIN wanted AS w ON d.doc_id = w.id"

# The lines of the list ------------------------------------------------------------------------------------------------

PAIR_LINES = """
    SELECT count(*) AS lines, count(CASE WHEN doc_a IS NULL THEN 1 END) AS unreadable,
           count(CASE WHEN doc_a = doc_b THEN 1 END) AS with_itself, count(doc_a) AS possible
    FROM entries
"""

GROUP_LINES = """
    SELECT count(*) AS lines, count(CASE WHEN n = 0 THEN 1 END) AS unreadable,
           count(CASE WHEN n = 1 THEN 1 END) AS with_itself,
           CAST(coalesce(sum(shiftright(n * (n - 1), 1)), 0) AS BIGINT) AS possible
    FROM (SELECT set_id, count(doc_id) AS n FROM entries GROUP BY set_id) AS sizes
"""

PAIR_IDS = "SELECT doc_a AS doc_id FROM entries WHERE doc_a IS NOT NULL UNION SELECT doc_b FROM entries WHERE doc_b IS NOT NULL"  # noqa: E501
GROUP_IDS = "SELECT DISTINCT doc_id FROM entries WHERE doc_id IS NOT NULL"

PAIRS_ONCE = """
    SELECT least(doc_a, doc_b) AS doc_a, greatest(doc_a, doc_b) AS doc_b, max(score) AS score, count(*) AS times
    FROM entries WHERE doc_a <> doc_b GROUP BY least(doc_a, doc_b), greatest(doc_a, doc_b)
"""
"""Each pair of two different documents once. `times`: number of its lines; `score`: the highest of them."""

GROUPS_AS_PAIRS = """
    SELECT a.doc_id AS doc_a, b.doc_id AS doc_b, CAST(NULL AS DOUBLE) AS score, count(*) AS times
    FROM entries AS a JOIN entries AS b ON a.set_id = b.set_id AND a.doc_id < b.doc_id GROUP BY a.doc_id, b.doc_id
"""

JUDGED = """
    WITH ends AS (SELECT doc_a AS doc_id FROM reference UNION SELECT doc_b AS doc_id FROM reference),
         own AS (SELECT m.doc_id, array_agg(m.cluster_id) AS clusters
                 FROM members AS m JOIN ends AS e ON m.doc_id = e.doc_id GROUP BY m.doc_id),
         about AS (SELECT d.doc_id, d.node, o.clusters, u.family
                   FROM docs AS d JOIN ends AS e ON d.doc_id = e.doc_id
                   LEFT JOIN own AS o ON d.doc_id = o.doc_id LEFT JOIN unlisted AS u ON d.node = u.node),
         named AS (SELECT r.doc_a, r.doc_b, r.score, r.times,
                          a.doc_id IS NOT NULL AND b.doc_id IS NOT NULL AS known,
                          coalesce(arrays_overlap(a.clusters, b.clusters), false) AS together,
                          coalesce(a.family = b.family, false) AS is_optional,
                          CASE WHEN a.node <= b.node THEN a.node ELSE b.node END AS low,
                          CASE WHEN a.node <= b.node THEN b.node ELSE a.node END AS high
                   FROM reference AS r LEFT JOIN about AS a ON r.doc_a = a.doc_id LEFT JOIN about AS b ON r.doc_b = b.doc_id)
    SELECT n.doc_a, n.doc_b, n.score, n.times, n.known, e.node_a IS NOT NULL AS found, n.together,
           n.is_optional AND e.node_a IS NULL AS unlisted, e.resemblance
    FROM named AS n LEFT JOIN edges AS e ON n.known AND n.low = e.node_a AND n.high = e.node_b
"""  # noqa: E501
"""known: both ids are documents; found: in `pairs`, or a star stands for it; together: in a common cluster; unlisted:
not found, in one component given by leaders, and neither node leads; resemblance: null unless found. Only
the documents of the list are looked up."""

COUNTED = """
    SELECT count(*) AS reference, CAST(coalesce(sum(times), 0) AS BIGINT) AS times,
           count(CASE WHEN known THEN 1 END) AS known, count(CASE WHEN found THEN 1 END) AS found,
           count(CASE WHEN together THEN 1 END) AS together, count(CASE WHEN unlisted THEN 1 END) AS unlisted,
           min(score) AS low, max(score) AS high
    FROM judged
"""

COMMON = """
    WITH held AS (SELECT doc_id, array_sort(array_agg(set_id)) AS sets
                  FROM entries WHERE doc_id IS NOT NULL GROUP BY doc_id),
         cells AS (SELECT d.node, h.sets, count(*) AS n
                   FROM held AS h JOIN docs AS d ON h.doc_id = d.doc_id GROUP BY d.node, h.sets),
         marked AS (SELECT c.node, c.sets, c.n, u.family FROM cells AS c LEFT JOIN unlisted AS u ON c.node = u.node),
         met AS (SELECT x.family = y.family AS is_optional,
                        CASE WHEN e.node_a <> e.node_b THEN x.n * y.n
                             WHEN x.sets = y.sets THEN shiftright(x.n * (x.n - 1), 1)
                             WHEN x.sets < y.sets THEN x.n * y.n ELSE 0 END AS pairs
                 FROM edges AS e JOIN marked AS x ON e.node_a = x.node JOIN marked AS y ON e.node_b = y.node
                 WHERE arrays_overlap(x.sets, y.sets))
    SELECT CAST(coalesce(sum(pairs), 0) AS BIGINT) AS common,
           CAST(coalesce(sum(CASE WHEN is_optional THEN pairs END), 0) AS BIGINT) AS removed
    FROM met
"""
"""`common`: pairs in a common group and in the run's pairs; `removed`: those of two nodes of one family in `unlisted`.

A *cell* is the documents of one node that are in the same groups. Two cells that have a group in common and whose nodes
have an edge contribute the product of their sizes. Within one node, a cell with itself contributes its own pairs, and
two cells are counted once."""

GROUPED = "SELECT CAST(set_id AS STRING) AS name, doc_id AS item FROM entries WHERE doc_id IS NOT NULL"

GROUPED_KNOWN = (
    "SELECT CAST(e.set_id AS STRING) AS name, e.doc_id AS item FROM entries AS e JOIN docs AS d ON e.doc_id = d.doc_id"
)

GROUPED_TOGETHER = """
    SELECT concat(m.cluster_id, ' ', CAST(e.set_id AS STRING)) AS name, e.doc_id AS item
    FROM entries AS e JOIN members AS m ON e.doc_id = m.doc_id
"""
"""Memberships in (cluster, group): a pair has a common group and a common cluster if it has a common set of these."""

GROUPED_UNLISTED = """
    SELECT concat(u.family, ' ', CAST(e.set_id AS STRING)) AS name, e.doc_id AS item
    FROM entries AS e JOIN docs AS d ON e.doc_id = d.doc_id JOIN unlisted AS u ON d.node = u.node
"""
"""Memberships in (component given by leaders, group), of documents whose node does not lead."""

MISSED_SKETCHES = """
    SELECT m.doc_a, m.doc_b, m.score, m.together,
           CASE WHEN NOT m.known THEN 'unknown id' WHEN m.unlisted THEN 'unlisted' ELSE 'below threshold' END AS why,
           a.url AS url_a, b.url AS url_b, a.sketch AS sketch_a, b.sketch AS sketch_b,
           a.n_features AS features_a, b.n_features AS features_b
    FROM missed AS m LEFT JOIN documents AS a ON m.doc_a = a.doc_id LEFT JOIN documents AS b ON m.doc_b = b.doc_id
    ORDER BY m.score DESC, m.doc_a, m.doc_b
"""

HEAD_BYTES = 1 << 18
"""Bytes at the start of the expanded file from which the layout is detected."""

MOST_COMMENTS = 5
"""Maximum number of lines that begin with `#` whose fields are looked up among the documents; so of spelled ids."""

RAW_BYTES = 4 * HEAD_BYTES
"""Bytes read at the start of the stored file: a block of bzip2, up to 900 kB, expands only as a whole."""


def known_ids(ids: str) -> str:
    """Return the query for the numbers of ids, unknown ids and rejected ids; the SELECT `ids` gives each id once."""
    return f"""
        SELECT count(*) AS ids, count(CASE WHEN d.doc_id IS NULL THEN 1 END) AS unknown_ids,
               count(CASE WHEN d.doc_id IS NULL AND r.doc_id IS NOT NULL THEN 1 END) AS rejected_ids
        FROM ({ids}) AS i LEFT JOIN docs AS d ON i.doc_id = d.doc_id
        LEFT JOIN (SELECT DISTINCT doc_id FROM rejects) AS r ON i.doc_id = r.doc_id
    """  # noqa: S608 - a question of this module


def unknown_ids(ids: str, most: int) -> str:
    """Return the query for the first ids that are no documents; `ids` as of `known_ids`."""
    text = f"SELECT i.doc_id FROM ({ids}) AS i ANTI JOIN docs AS d ON i.doc_id = d.doc_id"  # noqa: S608
    return f"{text} ORDER BY i.doc_id LIMIT {most}"


# The pairs of the list, one by one ------------------------------------------------------------------------------------


def by_band(value: str, width: float, counts: str, rows: str) -> str:
    """Return the query for counts by band of a value. A band includes its lower edge; rows without a value: null."""
    number = f"CAST(floor({value} / CAST({width!r} AS DOUBLE) + 1e-9) AS BIGINT)"
    return f"SELECT {number} AS band, {counts} FROM {rows} GROUP BY {number}"  # noqa: S608 - a question of this module


# The pairs of groups, counted without listing them --------------------------------------------------------------------


def kinds(memberships: str) -> str:
    """Return the query for kinds of items, those in the same sets, with their numbers, for `count_pairs_of_kinds`.

    Args:
        memberships: a SELECT of (name of a set, item), each once.
    """
    return f"""
        SELECT sets, count(*) AS n
        FROM (SELECT item, array_sort(array_agg(name)) AS sets FROM ({memberships}) AS held GROUP BY item) AS items
        GROUP BY sets
    """  # noqa: S608 - a question of this module


# Pairs on one side only -----------------------------------------------------------------------------------------------


def missed(most: int) -> str:
    """Return the query for the first `most` pairs of the list that the run lacks, highest score first."""
    return f"""
        SELECT doc_a, doc_b, score, known, together, unlisted FROM judged WHERE NOT found
        ORDER BY score DESC, doc_a, doc_b LIMIT {most}
    """  # noqa: S608 - a number


def unasked(most: int) -> str:
    """Return the query for the first `most` rows of `pairs` that the list lacks, highest resemblance first."""
    return f"""
        WITH rest AS (SELECT p.doc_a, p.doc_b, p.overlap, p.resemblance, p.star
                      FROM pairs AS p
                      WHERE NOT EXISTS (SELECT 1 FROM judged AS j
                                        WHERE j.found AND j.doc_a = p.doc_a AND j.doc_b = p.doc_b)
                      ORDER BY p.resemblance DESC, p.doc_a, p.doc_b LIMIT {most})
        SELECT r.doc_a, r.doc_b, r.overlap, r.resemblance, r.star, a.url AS url_a, b.url AS url_b
        FROM rest AS r LEFT JOIN documents AS a ON r.doc_a = a.doc_id LEFT JOIN documents AS b ON r.doc_b = b.doc_id
        ORDER BY r.resemblance DESC, r.doc_a, r.doc_b
    """  # noqa: S608 - a number


class Files(FolderFiles, Protocol):
    """The operations that a command needs of a file system, this machine's or Hadoop's."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """List the files of INPUT paths."""

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: Any) -> dict[str, Any]:  # noqa: ANN401 - its types come with all parsers
        """Look into files, as `nddup.scanning.collection` requires."""

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Read `size` bytes of a file from `start`."""


@dataclass(frozen=True)
class Reading:
    """How to read the lines of a list; None: as its first lines suggest.

    Attributes:
        kind: whether a line is a pair or a group.
        delimiter: a name of `reference_lists.DELIMITERS`.
        header: whether the first line names the columns.
        score: name or number of the score's column, or `none`.
    """

    kind: Kind | None = None
    delimiter: str | None = None
    header: bool | None = None
    score: str | None = None


class ReferenceFile(NamedTuple):
    """A file and how to read it: its URI, stored bytes, compression (empty: plain), layout of its lines."""

    path: str
    size: int
    compression: str
    layout: Layout


def open_reference(
    storage: Files, truth: str, reading: Reading, are_documents: Callable[[Sequence[str]], bool]
) -> ReferenceFile:
    """Find the file and detect its layout.

    Args:
        truth: the path as the user gave it.
        reading: the parts of the layout that the user gave.
        are_documents: returns whether all of some ids are documents of the run.

    Raises:
        ConfigError: if there is no such file, it is a folder of several files, or its lines are not a list.

    Cost: reads the first `RAW_BYTES`.
    """
    if not storage.exists(truth):
        raise ConfigError(f"--truth {truth}: no such file")
    files = list_asked(storage.list_inputs, truth, "--truth")
    if len(files) != 1:
        raise ConfigError(f"--truth {truth}: expected one file, got a folder of {len(files)}")

    raw = storage.read_part(files[0].path, 0, RAW_BYTES)
    folder, _, name = truth.rpartition("/")
    if name == "duplicates.txt" and storage.exists(f"{folder or '.'}/_RUN.json"):  # of another run
        return ReferenceFile(files[0].path, files[0].size, "", OWN)
    text = expand_head(raw, HEAD_BYTES)
    lines = first_lines(text, is_whole=len(text) < HEAD_BYTES)
    try:
        layout = _tell_layout(lines, reading, header=reading.header)
        # An id may begin with the sign of a comment. If both fields are documents, such a line is an entry.
        has_comments = not any(are_documents(ids) for ids in _marked_ids(layout))
        if not has_comments:
            layout = _tell_layout(lines, reading, header=reading.header, has_comments=False)
        # An id may look like a column name. If both names are documents, the first line is an entry.
        if reading.header is None and layout.header and are_documents(layout.header[:2]):
            layout = _tell_layout(lines, reading, header=False, has_comments=has_comments)
    except LayoutError as error:
        raise ConfigError(f"--truth {truth}: {error}") from error
    layout = replace(layout, spelling=_find_spelling(lines, layout, are_documents))
    return ReferenceFile(files[0].path, files[0].size, compression_of(raw), layout)


def _marked_ids(layout: Layout) -> Iterator[list[str]]:
    """Yield the first two fields of the first lines that were taken for comments, if they have two."""
    if layout.delimiter == "json":
        return
    marked = [line for line in layout.skipped if line.startswith("#")]
    for line in marked[:MOST_COMMENTS]:
        ids = split_fields(line, DELIMITERS[layout.delimiter])[:2]
        if len(ids) > 1 and all(ids):
            yield ids


def _find_spelling(
    lines: Sequence[str], layout: Layout, are_documents: Callable[[Sequence[str]], bool]
) -> Callable[[str], str] | None:
    """Return the first of `SPELLINGS` by which one of the first ids is a document that it is not as written."""
    written = dict.fromkeys(one for ids in read_lines(lines[:LOOKED_AT], layout).members for one in ids or ())
    for spelling in SPELLINGS:
        others = [one for one in written if spelling(one) != one][:MOST_COMMENTS]
        if any(are_documents([spelling(one)]) and not are_documents([one]) for one in others):
            return spelling
    return None


def _tell_layout(lines: Sequence[str], reading: Reading, *, header: bool | None, has_comments: bool = True) -> Layout:
    options = {"kind": reading.kind, "delimiter": reading.delimiter, "score": reading.score}
    return guess_layout(lines, header=header, has_comments=has_comments, **options)  # type: ignore[arg-type]
