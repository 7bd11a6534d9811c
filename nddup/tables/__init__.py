"""The tables of a run, declared once: name, columns, types and meanings.

Other programs rely on the tables of a finished run. The working tables live under its `_stages` folder or in memory,
and may change. `spark.schemas` derives Spark's types. Spark has no unsigned integers: a feature id is stored as the
`long` of the same 64 bits, and `sketch` is ascending as UNSIGNED numbers.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nddup.tables.declared import TYPES as TYPES
from nddup.tables.declared import Column as Column
from nddup.tables.declared import Table as Table
from nddup.tables.documents import CAPTURE as CAPTURE
from nddup.tables.documents import DOCUMENTS as DOCUMENTS
from nddup.tables.documents import UNREAD as UNREAD

_CONTAINED = "estimate of the share of this document that is in the other; null where the kind gives none"

_OWN = "number of distinct shingles of this document; null likewise"

LIKENESS = (
    Column("overlap", "int", "number of features common to both sketches"),
    Column("resemblance", "double",
           "common shingles as a share of all shingles of both: exact with `pairs.confirm` `resemblance`, else an"
           " estimate; null where the kind gives none", may_lack=True),
    Column("containment_a", "double", _CONTAINED, may_lack=True),
    Column("containment_b", "double", _CONTAINED, may_lack=True),
)  # fmt: skip
"""What two sketches have in common: columns of `pairs` and of every table of compared sketches before it."""

OF_TEXTS = (
    Column("edit", "double",
           "token edit similarity 2 LCS / (a + b) of the two texts; null unless `pairs.confirm` is `edit`",
           may_lack=True),
    Column("common", "int", "number of distinct shingles of both texts; null unless `pairs.confirm` is `resemblance`",
           may_lack=True),
    Column("shingles_a", "int", _OWN, may_lack=True),
    Column("shingles_b", "int", _OWN, may_lack=True),
)  # fmt: skip
"""What their texts have in common, where texts confirm pairs: columns of `pairs`, null without."""

DIRECTED = {column.name: f"{column.name[:-1]}b" for column in (*LIKENESS, *OF_TEXTS) if column.name.endswith("_a")}
"""The columns about one end, `…_a`, each with that of the other end: they turn with the ids."""

_COMPARED = ", ".join(f"{column.name} {column.type}" for column in LIKENESS)

_CONFIRMED = ", ".join(f"{column.name} {column.type}" for column in OF_TEXTS)

REJECTS = Table(
    "rejects", "One row for each record, or file, that did not become a document.",
    doing="gather the records that became no document", proved_by="records",
    columns=(
        Column("source", "string", "as in `documents`"),
        Column("record", "long", "as in `documents`; 1 for a whole file"),
        Column("doc_id", "string", "the id, where it could be read; else null", may_lack=True),
        Column("reason", "string",
               "one or two words: `malformed`, `truncated`, `repeated id`, `too large`, `damaged`, `short`,"
               " `taken out`, …"),
        Column("detail", "string", "what was wrong", may_lack=True),
        Column("excerpt", "string", "the first characters of the record", may_lack=True),
    ),
)  # fmt: skip

REPEATED = "repeated id"
"""Reason of a later record of an id. In a run over files its content is that of a document; in a table of the caller an
id names one row. Neither is a loss; in a repository it is one."""

TAKEN_OUT = "taken out"
"""Reason of a document that a list of `--without` names."""

FIRST_SEEN = ("first seen as record ", " of ")
"""What its detail says before the ordinal of the first record of that id, and before the file of that record."""

PAIRS = Table(
    "pairs", "One row for each pair of near-duplicate documents.", doing="expand the matches to pairs of documents",
    proved_by="pairs",
    columns=(
        Column("doc_a", "string", "the smaller id, compared as bytes"),
        Column("doc_b", "string", "the larger id"),
        *LIKENESS,
        Column("star", "boolean", "whether the row stands for all pairs of two groups (`pairs.expand_limit`)"),
        *OF_TEXTS,
    ),
)  # fmt: skip

CLUSTERS = Table(
    "clusters",
    "One row for each cluster: a maximal set of near-duplicates, or what `clusters.mode` makes instead.",
    doing="name the clusters by their members", proved_by="clusters",
    columns=(
        Column("cluster_id", "string", "16 hex digits of SHA-256 over the sorted ids, each followed by a zero byte"),
        Column("support", "int", "number of features common to all members; may be 0 in `partition` and `components`"),
        Column("size", "int", "number of members, at least 2"),
        Column("members", "array<string>", "their ids, sorted, at most `clusters.max_listed`; `members` has them all"),
        Column("component", "string", "smallest id of the connected component of the pairs that holds the cluster"),
        Column("coverage", "string",
               "`all`: every maximal set of the component is listed; `pairs`: every pair is in a maximal set;"
               " `documents`: every document with a near-duplicate is in a set; or the name of the mode"),
    ),
)  # fmt: skip

MEMBERS = Table(
    "members", "One row for each member of each cluster.", doing="list the members of the clusters",
    proved_by="members",
    columns=(
        Column("cluster_id", "string", "as in `clusters`"),
        Column("doc_id", "string", "a member"),
        Column("representative", "boolean",
               "whether the keep policy prefers it to all other members: in `partition`, the kept document"),
    ),
)  # fmt: skip

KEEP = Table(
    "keep", "Every document once: kept, or removed as a duplicate of a kept one.",
    doing="choose the documents that stay", proved_by="keep",
    columns=(
        Column("doc_id", "string", "every document, once"),
        Column("kept", "boolean", "whether it is kept"),
        Column("duplicate_of", "string",
               "of the kept near-duplicates that precede it in the order of `keep.policy`, and with `keep.max_lost`"
               " lack at most that share of it, the one of highest resemblance; null where it is kept, or forced out"
               " and like no kept one", may_lack=True),
        Column("reason", "string",
               "`exact`: the same content; `equal`: the same `group`; `near`; `forced`: by `keep.force`; null where it"
               " is kept", may_lack=True),
        Column("resemblance", "double", "of it and `duplicate_of`, as in `pairs`; null where there is none",
               may_lack=True),
        Column("lost", "double",
               "share of its distinct shingles that `duplicate_of` lacks; null where it is kept, and where only"
               " sketches were compared", may_lack=True),
        Column("leader", "boolean",
               "in a component of more than `pairs.max_edges` pairs, whether it leads: no leader before it is near, or"
               " `keep.force` keeps it; `pairs` has all pairs of a leader. Everywhere else false, also past the budget"
               " of sets, where all pairs are listed"),
    ),
)  # fmt: skip

FALSE_COMPONENTS = Table(
    "false_components",
    "One row for each connected component of the pairs in which not every two documents are near-duplicates.",
    doing="list the components that are no cluster", proved_by="clusters",
    columns=(
        Column("component", "string", "smallest id of the component"),
        Column("size", "long", "number of its documents"),
        Column("pairs", "long", "number of their pairs that are near-duplicates"),
        Column("invented", "long", "number of their pairs that are not: transitive closure would add them"),
        Column("exact", "boolean",
               "false where `invented` is an upper bound: bands or runs find the pairs, or leaders give the component"),
    ),
)  # fmt: skip

STORED_TEXTS = Table(
    "texts", "Texts of the documents that the report shows, bounded in number and length.",
    doing="store the texts that the report shows", proved_by="records",
    columns=(
        Column("doc_id", "string", "a document of a cluster that the report shows"),
        Column("text", "string", "its text, markup removed, at most 20,000 characters"),
    ),
)  # fmt: skip

NAMES = Table(
    "names",
    "Only with `output.names_from`: one row for each name that a family has, or had in an earlier run.",
    doing="name the families as earlier runs did", proved_by="accounting",
    columns=(
        Column("name", "string", "the name: an id, of the oldest document or of one that made the family new"),
        Column("doc_id", "string", "the kept document of the family with this name; null: no family has it any more"),
        Column("documents", "long", "documents of the family; 0: there is none any more"),
        Column("before", "long", "documents that it had in the earlier run; 0: it is new, or was gone by then"),
    ),
)  # fmt: skip

MOST_VALUES = 100
"""Values of a column that a family lists."""

_LEDGER = Column("ledger", "array<ledger>",
                 "for each column of `keep.ledger`: its `name`; `values`, the 100 most frequent, each a `value` with"
                 " its number of `documents`, of equals the smaller first, null for a missing one; `distinct`, the"
                 " number of different values; and `least` and `greatest`, where all are numbers, or all dates such as"
                 " 2024-05-31")  # fmt: skip

FAMILIES = Table(
    "families",
    "Only with `keep.ledger`: one row for each kept document, about those it stands for: itself, and the documents"
    " whose `duplicate_of` it is.",
    doing="count what each kept document stands for", proved_by="families",
    columns=(
        Column("doc_id", "string", "the kept document"),
        Column("documents", "long", "documents that it stands for, itself too"),
        Column("equal", "long", "those of its `group`, itself too"),
        Column("lost_most", "double", "the greatest `lost` of them; null where there is none"),
        Column("resemblance_least", "double", "the least `resemblance` of them; likewise"),
        _LEDGER,
    ),
)  # fmt: skip

LEDGERS = Table("ledgers", "The ledger of each family.", (Column("doc_id", "string"), _LEDGER))

RESULTS = {
    table.name: table for table in (DOCUMENTS, REJECTS, PAIRS, CLUSTERS, MEMBERS, KEEP, FALSE_COMPONENTS, STORED_TEXTS)
}
"""The tables that a finished run holds, by name."""

READABLE = {**RESULTS, FAMILIES.name: FAMILIES, NAMES.name: NAMES}
"""The tables that a finished run may hold, by name."""

ID_COLUMNS = frozenset({"doc_id", "group", "doc_a", "doc_b", "members", "component", "duplicate_of"})
"""The columns of these tables that hold ids of documents."""


def working(name: str, columns: str, meaning: str, doing: str = "") -> Table:
    """Declare a working table from `name type` pairs separated by commas; its meaning covers the columns."""
    pairs = (pair.split() for pair in columns.split(","))
    return Table(name, meaning, tuple(Column(name, kind) for name, kind in pairs), doing)


def likeness_of(
    overlap: NDArray[np.integer],
    resemblance: NDArray[np.float64],
    sizes: NDArray[np.integer],
    *,
    shows_containment: bool,
) -> dict[str, NDArray[np.generic]]:
    """Return the values of LIKENESS for k pairs of sketches, (k,) each, but of the columns that the kind does not show.

    Args:
        overlap: (k,), features common to both.
        resemblance: (k,), estimated.
        sizes: (2, k), the features of a, and of b.
        shows_containment: whether a share of a sketch estimates the same share of its document.
    """
    columns: dict[str, NDArray[np.generic]] = {"overlap": overlap, "resemblance": resemblance}
    return columns | (
        {"containment_a": overlap / sizes[0], "containment_b": overlap / sizes[1]} if shows_containment else {}
    )


CHUNKS = working(
    "chunks", "value binary, source string, split long, ends_open boolean",
    "Bytes between two record ends, in file order within a split; `split` is the offset where the split starts. Where"
    " `ends_open`, the last chunk of the split is the last of its file, with no separator after it.",
)  # fmt: skip
FILES = working(
    "files",
    "path string, source string, compression string, most long, size long, task int, content binary",
    "Files that are read from their start, each by one task. `most` is the number of bytes that a file may expand to,"
    " `size` its stored size. `content` is null where the worker opens the file itself; else the rows of a file, in"
    " order, hold its bytes, cut at line ends.",
)
CONTENTS = working(
    "contents", "source string, split long, seq long, content string, line string",
    "The content of a record as text, its markup kept; `line` is the line of JSON lines that held it.",
)  # fmt: skip
FOUND_TEXTS = working(
    "found_texts", "source string, content_fingerprint binary, text string", "The text of a record, read again."
)
TOKENS = working(
    "tokens", "token_fingerprint binary, tokens array<long>",
    "The token hashes of a text in order, or its distinct shingle ids in ascending order, 64 bits each, read again;"
    " several records may have the same.",
)  # fmt: skip
TEXTS = working(
    "given_texts",
    "doc_id string, url string, title string, text string, turns string, source string, split long, seq long,"
    " policy array<string>",
    "Documents given as a DataFrame: text already decoded, numbered within their partition. `turns` is a chat, or a"
    " list of strings, as JSON, in place of a text. `policy` as in `documents`.",
)


_FOUND = working(
    "records",
    "split long, seq long, n_replaced int, n_stripped int, n_guessed int, n_inside int, sketch_fingerprint binary,"
    " reason string, detail string, excerpt string, refers_to array<string>",
    "One row for each record: a document, or a reject (`reason` not null). `seq` counts the records of a split from 0,"
    " `n_replaced` the undecodable bytes of the text, `n_stripped` its fields of unknown kind that held markup,"
    " `n_guessed` those whose encoding is a guess, `n_inside` those in which a page begins after other text."
    " `refers_to` names what a revisit repeats, the surest name first. Documents collapse by `sketch_fingerprint`;"
    " where texts confirm pairs, it is equal to `token_fingerprint`, which else is null.",
    "read, parse, strip and sketch every record",
)  # fmt: skip
RECORDS = replace(
    _FOUND,
    columns=(
        *_FOUND.columns,
        *(column for column in DOCUMENTS.columns if column.name not in ("doc_key", "record", "group")),
    ),
)
_NUMBERED = working(
    "numbered", "doc_key long, record long, is_made boolean",
    "A row of RECORDS, of NEW or of the run that it goes on from, with its numbers. `is_made`: it gives no id.",
    "number the records after those of the run before",
)  # fmt: skip
NUMBERED = replace(_NUMBERED, columns=(*_NUMBERED.columns, *RECORDS.columns))
OFFSETS = working(
    "offsets", "source string, split long, before_in_file long, before long",
    "The number of records before each split, in its file and in the collection.",
    "count the records before each part of a file",
)  # fmt: skip
PARTS = working(
    "parts", "source string, split long, before long",
    "The number of records of the collection before each part of a file that the embedded engine read.",
)  # fmt: skip
COUNTED = working(
    "counted", "source string, split long, n long",
    "Records that were counted in a part of a file; of several rows for one part, the largest tells its number.",
)  # fmt: skip
COLUMN_VALUES = working(
    "column_values", "source string, split long, seq long, reason string, policy array<string>",
    "The values of the columns that are asked of a record, or the reason why it is a reject.",
)  # fmt: skip
VERDICTS = working(
    "verdicts",
    "source string, record long, nddup_kept boolean, nddup_duplicate_of string, nddup_cluster string,"
    " nddup_copies long, reason string",
    "The result for each record where the inputs are written again: the tags of a document, the reason of a reject.",
)
CHOSEN = working("chosen", "doc_id string", "A kept document that is written again; `output.columns` adds to it.")
REWRITTEN = working(
    "rewritten", "source string, records long, whole long, plain long, problem string",
    "A file that was written again: the number of its records that stay, of those that could not be cut, and of those"
    " that lost their markup; or the problem that prevented the writing.",
)  # fmt: skip
NODES = working(
    "nodes",
    "doc_key long, doc_id string, first_id string, node long, size int, weight long, policy long,"
    " content_fingerprint binary, n_features int, n long, guard long",
    "One narrow row for each document. `node`, the name of its distinct sketch, is the `doc_key` of its `group`"
    " document, `first_id`. `weight` is the size of the sketch times the number of shingles that one id stands for: the"
    " heavier of two may contain the other; documents of `keep.force` are heavier, or lighter, than all others. `n`"
    " documents have the sketch. `guard` numbers the values in the columns of `keep.same`: equal ones have one number.",
    "order the documents by the keep policy",
)
TERMS = working(
    "terms", "term string, feature long, occurrences long, documents long",
    "The terms of a collection: id, number of occurrences, and number of documents.",
    "count the terms of the collection",
)  # fmt: skip
LEXICON = working(
    "lexicon", "term string, feature long, occurrences long, documents long",
    "The terms whose frequency lies in the interval; saved with the run, for other runs to use.",
    "choose the terms that describe documents",
)  # fmt: skip
SKETCHES = working(
    "sketches", "node long, sketch array<long>, n_features int",
    "The distinct, non-empty sketches, and the number of distinct shingles of their documents.",
)  # fmt: skip
COMPARED = working(
    "compared", f"what string, node_a long, node_b long, {_COMPARED}, candidates long, stopped long",
    "All results of one pass over the candidates. `what` is the kind of row. `pair`: a row of MATCHES. `link`: two"
    " heavy sketches, node_a < node_b, that were not compared and may belong to one family. `many`: joins two sketches"
    " of a component with too many pairs in one task to list them; `overlap` counts those, in one of its rows."
    " `count`: the counters of one task, which are 0 in the other rows. Columns that a kind of row does not have are"
    " null.",
    "compare sketches that share a rare feature",
)  # fmt: skip
MATCHES = working(
    "matches", f"node_a long, node_b long, {_COMPARED}",
    "Near-duplicate distinct sketches, node_a < node_b. The containments of each in the other are null where the kind"
    " shows none.",
    "join the pairs found first with those of the families searched separately",
)  # fmt: skip
_RECORDS_GIVEN = working(
    "given",
    "doc_key long, record long, sketch_fingerprint binary, reason string, detail string, excerpt string,"
    " refers_to array<string>",
    "For a later run onto this one: the records, as they were read, that became no document (of those `reason`, or a"
    " repeated id), a document under another id or parent than they give, or, of `reason` revisit, a copy of one.",
    "note what records said of themselves",
)
GIVEN = replace(
    _RECORDS_GIVEN,
    columns=(
        *(column._replace(may_lack=column.name not in {"doc_key", "record"}) for column in _RECORDS_GIVEN.columns),
        *(
            column._replace(may_lack=column.name != "source")
            for column in DOCUMENTS.columns
            if column.name not in ("doc_key", "record", "group", "sketch", "signature")
        ),
    ),
)
CHANGED = replace(working(
    "changed", "doc_key long", "The documents whose pairs, clusters and verdicts a run onto another makes anew.",
    "gather the documents that the new ones change",
), columns=DOCUMENTS.columns)  # fmt: skip
STALE = working(
    "stale", "doc_key long, doc_id string",
    "The documents of an earlier run whose pairs, clusters and verdicts a later one does not take over.",
    "find the rows that the new ones change",
)  # fmt: skip
CANDIDATES = working(
    "candidates", "node_a long, node_b long",
    "For a later run onto this one: distinct sketches that may be near-duplicates, as far as it takes to join all such"
    " in one component. A node is the `doc_key` of one of its documents.",
    "note the candidates",
)  # fmt: skip
TOUCHED = working(
    "touched", "node long",
    "Distinct sketches of an earlier run in components of CANDIDATES that a later one changes, each in the round that"
    " finds it.",
    "follow the candidates of what is new",
)  # fmt: skip
SHINGLES = working(
    "shingles", "node long, shingles array<long>",
    "For a later run onto this one: the distinct shingle ids, ascending as unsigned numbers, of the distinct texts"
    " whose sketches do not hold them all; only where these decide.",
    "read the shingles of the texts",
)  # fmt: skip
CONFIRMED = working(
    "confirmed",
    f"node_a long, node_b long, {_COMPARED}, {_CONFIRMED}, is_near boolean, is_bounded boolean, is_lost boolean",
    "A row of MATCHES whose texts were compared. `is_near`: they confirm it. Where their shingles decide, `resemblance`"
    " is exact, and `edit` is null; else `common` and the shingles of each text are. `is_bounded`: the pair was beyond"
    " the limit of work for one pair. `is_lost`: a text was not found again.",
    "compare the texts of the pairs",
)
CONNECTIONS = working(
    "connections", "node_a long, node_b long, is_link boolean, pairs long",
    "The edges that join sketches to families: matches, and links between heavy sketches. `pairs`: the matches that it"
    " stands for, 1 for a link.",
)  # fmt: skip
SEARCHED = working(
    "searched", "node long, family long, is_large boolean",
    "The sketches of the families whose pairs are searched again: families with a heavy sketch, and (`is_large`)"
    " components of more than `pairs.max_edges` pairs. No near-duplicate pair leaves a family.",
    "connect the heavy sketches to families",
)  # fmt: skip
FAMILY_PAIRS = working(
    "settled", f"what string, node_a long, node_b long, {_COMPARED}",
    "The results of the search in SEARCHED. `what` is the kind of row. `pair`: a row of MATCHES. `leaders`: a sketch,"
    " node_a, whose component has more than `pairs.max_edges` pairs, of which only those with a leader are here; with"
    " `keep.max_lost` those of a removed sketch too: node_b is the kept one that replaces it. `limited`: node_b"
    " sketches of a family were compared with heads only. `stopped`: a family of node_b sketches that took more than"
    " `pairs.max_comparisons` comparisons. Columns that a kind of row does not have are null.",
    "search the families of heavy sketches, and those with too many pairs",
)  # fmt: skip
GRAPH = working(
    "graph",
    "node long, component string, ordinal long, position int, component_size int, batch int, kept boolean,"
    " duplicate_of long, resemblance double, rank int, leads boolean, by_leaders boolean, share int",
    "One row for each node that has a neighbour. `position` is its place in its component (by `group`), `ordinal`"
    " numbers the components, `batch` is its FP-Growth fit (null: the pivot miner's), `rank` its place in the order of"
    " the policy. `leads`: no node that leads is near before it, or it is forced to be kept. `by_leaders`: the"
    " component has too many pairs, so it is clustered around leaders. `share`: the part of a component with many"
    " nodes whose task has the node as a pivot.",
    "find the components of the pair graph and the kept documents",
)
ORDERED = working(
    "ordered", "part int, row long, node long, group string, is_bound boolean, by_leaders boolean",
    "The nodes of a graph of more than a million pairs, in the order of the keep policy: by `part`, and within a part"
    " by `row`, from 0. `is_bound`: forced to be kept. `by_leaders` as in GRAPH.",
    "order the nodes of the pair graph by the policy",
)  # fmt: skip
PAIR_EDGES = working(
    "edges", "first long, second long, resemblance double, bars boolean",
    "The edges of that graph. The ends are places in the order of the policy, first < second. For containment,"
    " `resemblance` is the part of the second end that the first contains; where the first must not replace the"
    " second, less than any. `bars`: where the first leads, the second does not: it is not forced to be kept.",
    "number the edges of the pair graph",
)  # fmt: skip
SOLVED = working(
    "solved", "order_key long, ordinal long, fit int, kept boolean, leads boolean",
    "The results for the nodes of that graph: `ordinal` is the first node of the component by policy, `fit` the"
    " component's FP-Growth fit, given only at that node (null: the pivot miner's).",
    "make components and keep-list from the edges in order",
)  # fmt: skip
STARS = working(
    "stars", "first long, second long",
    "A graph contracted in rounds until each component is a star: its least node is the first end of each edge.",
)  # fmt: skip
REMOVED = working("removed", "order_key long", "Nodes removed in one round of the keep-list.")
REPLACED = working(
    "replaced", "node long, duplicate_of long",
    "With `keep.same`, the removed ones of the sketches divided by value, each with the kept one that replaces it.",
)  # fmt: skip
SETS = working(
    "sets", "ordinal long, positions array<int>, support int, coverage string",
    "A cluster, as positions of nodes in component `ordinal`.", "mine maximal sets of each component",
)  # fmt: skip
STARRED = working(
    "starred", "star string, doc_id string, first_id string, node long, size int, policy long",
    "The documents of each star, the kept document `star` with its duplicates; the other columns are those of NODES.",
    "find what each kept document stands for",
)  # fmt: skip
SUPPORTS = working("supports", "star string, support int", "The number of features that the sketches of a star share.")
NAMED = working(
    "named",
    "what string, set_id binary, doc_id string, cluster_id string, first_id string, support int, size int,"
    " members array<string>, component string, coverage string",
    "All results of one pass over the members in order. `what` is the kind of row. `member`: a document `doc_id` of"
    " the set. `cluster`: a row of CLUSTERS, with the document that the policy prefers as `first_id`. A set of one"
    " document has no cluster. Columns that a kind of row does not have are null.",
    "name the clusters by their members",
)

ONTO = {"given": GIVEN, "candidates": CANDIDATES, "shingles": SHINGLES}
"""The working tables that a run stores for a later run onto it, where `output.onto` is set."""

WORKING = {
    **ONTO,
    **{one.name: one for one in (
        TOUCHED, CHANGED, STALE, CONFIRMED, COMPARED, PAIR_EDGES, FAMILIES, SEARCHED, GRAPH, LEXICON,
        MATCHES, NAMED, NAMES, NODES, OFFSETS, ORDERED, PARTS, NUMBERED, RECORDS, REMOVED, SETS,
        FAMILY_PAIRS, SOLVED, STARRED, STARS, TERMS,
    )},
    "covered": SETS, "family_stars": STARS, "listed": SETS, "undecided": PAIR_EDGES,
}  # fmt: skip
"""The working tables that a run stores, by name; for tables made in rounds, the name before the number of the round."""


# The tables of a run ------------------------------------------------------------------------------------------------


def table_called(name: str) -> Table:
    """Return the declaration of a table that a run stores, or of one made in rounds (`removed-3`).

    Raises:
        KeyError: for a name that is not declared.
    """
    return RESULTS.get(name) or WORKING[name.partition("-")[0]]
