"""The working tables of a run, declared once. They live under its `_stages` folder or in memory, and may change."""

from nddup.table_types import working

CHUNKS = working(
    "chunks",
    "value binary, source string, split long, ends_open boolean",
    "Bytes between two record ends, in file order within a split; `split` is the offset where the split starts. Where"
    " `ends_open`, the last chunk of the split is the last of its file, with no separator after it.",
)
FILES = working(
    "files",
    "path string, source string, compression string, most long, size long, task int, content binary",
    "Files that are read from their start, each by one task. `most` is the number of bytes that a file may expand to,"
    " `size` its stored size. `content` is null where the worker opens the file itself; else the rows of a file, in"
    " order, hold its bytes, cut at line ends.",
)
CONTENTS = working(
    "contents",
    "source string, split long, seq long, content string, line string",
    "The content of a record as text, its markup kept; `line` is the line of JSON lines that held it.",
)
SHOWN = working(
    "shown",
    "turn int, cluster_id string, size int, place int, doc_id string, source string, content_fingerprint binary",
    "A document of a cluster that the report may show: clusters of a lower `turn` come first, `place` counts from 1.",
)
FOUND_TEXTS = working(
    "found_texts", "source string, content_fingerprint binary, text string", "The text of a record, read again."
)
TOKENS = working(
    "tokens",
    "token_fingerprint binary, tokens array<long>",
    "The token hashes of a text in order, 64 bits each, read again; several records may have the same text.",
)
TEXTS = working(
    "given_texts",
    "doc_id string, url string, text string, source string, split long, seq long",
    "Documents given as a DataFrame: text already decoded, numbered within their partition.",
)
RECORDS = working(
    "records",
    "source string, split long, seq long, doc_id string, url string, n_tokens int, n_features int,"
    " n_replaced int, n_stripped int, content_fingerprint binary, token_fingerprint binary, sketch_fingerprint binary,"
    " sketch array<long>, signature array<long>, policy array<string>, reason string, detail string, excerpt string",
    "One row for each record: a document, or a reject (`reason` not null). `seq` counts the records of a split from 0,"
    " `n_replaced` the undecodable places of the text, `n_stripped` its fields of unknown kind that are pages."
    " Documents collapse by `sketch_fingerprint`; where texts confirm pairs, it is equal to `token_fingerprint`, which"
    " else is null.",
    "read, parse, strip and sketch every record",
)
OFFSETS = working(
    "offsets",
    "source string, split long, before_in_file long, before long",
    "The number of records before each split, in its file and in the collection.",
    "count the records before each part of a file",
)
PARTS = working(
    "parts",
    "source string, split long, before long",
    "The number of records of the collection before each part of a file that the embedded engine read.",
)
VERDICTS = working(
    "verdicts",
    "source string, record long, nddup_kept boolean, nddup_duplicate_of string, nddup_cluster string,"
    " nddup_copies long, reason string",
    "The result for each record where the inputs are written again: the tags of a document, the reason of a reject.",
)
REWRITTEN = working(
    "rewritten",
    "source string, records long, problem string",
    "A file that was written again: the number of its records that stay, or the problem that prevented the writing.",
)
NODES = working(
    "nodes",
    "doc_key long, doc_id string, group string, node long, size int, weight long, policy long,"
    " content_fingerprint binary, n long",
    "One narrow row for each document. `node`, the name of its distinct sketch, is the `doc_key` of its `group`"
    " document. `weight` is the size of the sketch times the number of shingles that one id stands for: the heavier of"
    " two may contain the other. `n` documents have the sketch.",
    "order the documents by the keep policy",
)
TERMS = working(
    "terms",
    "term string, feature long, occurrences long, documents long",
    "The terms of a collection: id, number of occurrences, and number of documents.",
    "count the terms of the collection",
)
LEXICON = working(
    "lexicon",
    "term string, feature long, occurrences long, documents long",
    "The terms whose frequency lies in the interval; saved with the run, for other runs to use.",
    "choose the terms that describe documents",
)
SKETCHES = working("sketches", "node long, sketch array<long>", "The distinct, non-empty sketches.")
COMPARED = working(
    "compared",
    "what string, node_a long, node_b long, overlap int, resemblance double, containment_a double,"
    " containment_b double, candidates long, stopped long",
    "All results of one pass over the candidates. `what` is the kind of row. `pair`: a row of MATCHES. `link`: two"
    " heavy sketches, node_a < node_b, that were not compared and may belong to one family. `count`: the counters of"
    " one task, which are 0 in the other rows. Columns that a kind of row does not have are null.",
    "compare sketches that share a rare feature",
)
MATCHES = working(
    "matches",
    "node_a long, node_b long, overlap int, resemblance double, containment_a double, containment_b double",
    "Near-duplicate distinct sketches, node_a < node_b. The containments of each in the other are null where the kind"
    " shows none.",
    "join the pairs found first with those of the families searched separately",
)
CONFIRMED = working(
    "confirmed",
    "node_a long, node_b long, overlap int, resemblance double, containment_a double, containment_b double,"
    " edit double, is_bounded boolean, is_lost boolean",
    "A row of MATCHES whose texts were compared: `edit` is null where they do not confirm it. `is_bounded`: the pair"
    " was beyond the limit of work for one pair. `is_lost`: a text was not found again.",
    "compare the texts of the pairs",
)
CONNECTIONS = working(
    "connections",
    "node_a long, node_b long, is_link boolean",
    "The edges that join sketches to families: matches, and links between heavy sketches.",
)
FAMILIES = working(
    "families",
    "node long, family long, is_large boolean",
    "The sketches of the families whose pairs are searched again: families with a heavy sketch, and (`is_large`)"
    " components of more than `pairs.max_edges` pairs. No near-duplicate pair leaves a family.",
    "connect the heavy sketches to families",
)
SETTLED = working(
    "settled",
    "what string, node_a long, node_b long, overlap int, resemblance double, containment_a double,"
    " containment_b double",
    "The results of the search in FAMILIES. `what` is the kind of row. `pair`: a row of MATCHES. `leaders`: a sketch,"
    " node_a, whose component has more than `pairs.max_edges` pairs, of which only those with a kept end are here."
    " `stopped`: a family of node_b sketches that took more than `pairs.max_comparisons` comparisons. Columns that a"
    " kind of row does not have are null.",
    "search the families of heavy sketches, and those with too many pairs",
)
GRAPH = working(
    "graph",
    "node long, component string, ordinal long, position int, component_size int, batch int, kept boolean,"
    " duplicate_of long, resemblance double, leader int, rank int, by_leaders boolean, share int",
    "One row for each node that has a neighbour. `position` is its place in its component (by `group`), `ordinal`"
    " numbers the components, `batch` is its FP-Growth fit (null: the pivot miner's), `rank` its place in the order of"
    " the policy, `leader` the position of its `duplicate_of`, or its own. `by_leaders`: the component has too many"
    " pairs, so it is clustered around leaders. `share`: the part of a component with many nodes whose task has the"
    " node as a pivot.",
    "find the components of the pair graph and the kept documents",
)
ORDERED = working(
    "ordered",
    "part int, row long, node long, group string, by_leaders boolean",
    "The nodes of a graph that is not gathered in one task, in the order of the keep policy: by `part`, and within a"
    " part by `row`, from 0. `by_leaders` as in GRAPH.",
    "order the nodes of the pair graph by the policy",
)
PAIR_EDGES = working(
    "edges",
    "first long, second long, resemblance double, of_first double",
    "The edges of that graph. The ends are places in the order of the policy, first < second. For containment,"
    " `resemblance` is the part of the second end that the first contains, and `of_first` the part of the first that"
    " the second contains; else `of_first` is null.",
    "number the edges of the pair graph",
)
SOLVED = working(
    "solved",
    "order_key long, ordinal long, fit int, kept boolean",
    "The results for the nodes of that graph: `ordinal` is the first node of the component by policy, `fit` the"
    " component's FP-Growth fit, given only at that node (null: the pivot miner's).",
    "make components and keep-list from the edges in order",
)
STARS = working(
    "stars",
    "first long, second long",
    "A graph contracted in rounds until each component is a star: its least node is the first end of each edge.",
)
REMOVED = working("removed", "order_key long", "Nodes removed in one round of the keep-list.")
SETS = working(
    "sets",
    "ordinal long, positions array<int>, support int, coverage string",
    "A cluster, as positions of nodes in component `ordinal`.",
    "mine maximal sets of each component",
)
NAMED = working(
    "named",
    "what string, set_id binary, doc_id string, cluster_id string, first_id string, support int, size int,"
    " members array<string>, component string, coverage string",
    "All results of one pass over the members in order. `what` is the kind of row. `member`: a document `doc_id` of"
    " the set. `cluster`: a row of CLUSTERS, with the document that the policy prefers as `first_id`. A set of one"
    " document has no cluster. Columns that a kind of row does not have are null.",
    "name the clusters by their members",
)

WORKING = {
    "confirmed": CONFIRMED,
    "compared": COMPARED,
    "covered": SETS,
    "edges": PAIR_EDGES,
    "families": FAMILIES,
    "family_stars": STARS,
    "graph": GRAPH,
    "lexicon": LEXICON,
    "listed": SETS,
    "matches": MATCHES,
    "named": NAMED,
    "nodes": NODES,
    "offsets": OFFSETS,
    "ordered": ORDERED,
    "parts": PARTS,
    "records": RECORDS,
    "removed": REMOVED,
    "sets": SETS,
    "settled": SETTLED,
    "solved": SOLVED,
    "stars": STARS,
    "terms": TERMS,
    "undecided": PAIR_EDGES,
}
"""The working tables that a run keeps, by name; for tables made in rounds, the name before the number of the round."""
