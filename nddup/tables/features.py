"""The tables of `nddup split`, `diff`, `against` and `passages`: those they write, and those between their steps."""

from nddup.tables import REJECTS, Column, Table, working

SPLIT = Table(
    "split", "One row for each document of the run, with its part.",
    (
        Column("doc_id", "string", "the document"),
        Column("part", "string", "its part; null where it is left out: --fixed gives its unit another part"),
        Column("unit", "string", "smallest id of the documents that must go to one part with it"),
        Column("documents", "long", "number of these documents"),
        Column("decided_by", "string",
               "what gave the unit its part: `fixed` (--fixed), `earlier` (--from), `size`, or `largest`: it has more"
               " documents than the whole share of any part"),
        Column("given", "string", "the part that --fixed names for the document, else that of --from; else null"),
    ),
)  # fmt: skip

SHARES = Table(
    "shares",
    "What each part has and should have: of all documents, and of those with each value of the columns of --by.",
    (
        Column("name", "string", "a column of --by; null for all documents"),
        Column("value", "string", "its value, which may be null"),
        Column("part", "string", "a part"),
        Column("documents", "long", "documents of the part with this value"),
        Column("asked", "double", "the part's share of all documents with this value"),
    ),
)

SPLIT_TABLES = {table.name: table for table in (SPLIT, SHARES)}
"""The tables of a split, by name."""

CHANGES = Table(
    "changes", "One row for each document that differs between two runs.",
    (
        Column("doc_id", "string", "the document"),
        Column("change", "string",
               "`added` or `gone`; `text`: its content is another; `verdict`: only what became of it; `row`: only"
               " other columns, such as its place in a file"),
        Column("kept_before", "boolean", "whether the earlier run kept it; null where it was not there"),
        Column("kept_after", "boolean", "whether the later run keeps it; null where it is gone"),
        Column("duplicate_of_before", "string", "the document that stood for it in the earlier run"),
        Column("duplicate_of_after", "string", "the document that stands for it in the later run"),
        Column("cause", "string",
               "why a document of both runs has another verdict, the first of these that holds: `text`: its own;"
               " `values`: of columns that decide, or keep.force; `settings`; `neighbours`: one of these changed, came"
               " or went in its component; `order` of the documents in the collection; `version` of nddup or a"
               " library; `other`: nothing of these, such as the lexicon of the collection; null where the verdict is"
               " the same"),
    ),
)  # fmt: skip

PAIR_CHANGES = Table(
    "pair_changes", "One row for each pair of near-duplicates that only one of two runs has.",
    (
        Column("doc_a", "string", "as in `pairs`"),
        Column("doc_b", "string", "as in `pairs`"),
        Column("change", "string", "`won`: only the later run has it; `lost`: only the earlier one"),
        Column("overlap", "int", "as in `pairs`"),
        Column("resemblance", "double", "as in `pairs`"),
    ),
)  # fmt: skip

_GROUP_COLUMNS = (
    Column("change", "string",
           "`born`, `gone`; `split`: two later ones take from it; `merged`: it takes from two earlier ones; `grown`,"
           " `shrunk`; `changed`: as many documents, but others, or another one is kept"),
    Column("before", "long", "documents in the earlier run, 0 where it was not there"),
    Column("after", "long", "documents in the later run, 0 where it is gone"),
    Column("came", "long", "documents that were not in it before"),
    Column("went", "long", "documents that are no longer in it"),
    Column("takes_from", "long", "number of earlier ones that had documents of it"),
    Column("gives_to", "long", "number of later ones that have documents of it"),
)  # fmt: skip

FAMILY_CHANGES = Table(
    "family_changes",
    "One row for each family, a kept document and what it stands for, that differs between two runs.",
    (
        Column("name", "string", "its name, which lasts from run to run"),
        *_GROUP_COLUMNS,
        Column("doc_id", "string", "its kept document in the later run; null where it is gone"),
    ),
)

SET_CHANGES = Table(
    "set_changes",
    "One row for each cluster that differs between two runs; one that shares most documents with an earlier one is it."
    " One with a document of very many is compared with none: it is born, or gone.",
    (
        Column("name", "string", "the id of the cluster in the earlier run; of one that is born, in the later run"),
        *_GROUP_COLUMNS,
        Column("cluster_id", "string", "its id in the later run; null where it is gone"),
    ),
)

DIFF_TABLES = {table.name: table for table in (CHANGES, PAIR_CHANGES, FAMILY_CHANGES, SET_CHANGES)}
"""The tables of a diff, by name; beside them `documents` and `keep` hold the later rows that the earlier run lacks."""


ITEMS = Table(
    "items", "One row per document of B, in the order of its collection.",
    (
        Column("item", "string",
               "its id; `source#record` where the record has none, or where an earlier item has the same"),
        Column("source", "string", "path of the file relative to B"),
        Column("shingles", "int", "distinct shingles of the item"),
        Column("suppressed", "int", "how many of them are in too many documents of A, and count nowhere else"),
        Column("verdict", "string",
               "`found`; `part`: something is shared, less than the threshold; `clean`: nothing is shared;"
               " `not testable`: too few shingles, or too little of A was read, to say"),
        Column("reason", "string",
               "why it is not testable: `short`, fewer shingles than `against.min_shingles`; `common`, fewer left"
               " after suppression; `unread`, nothing is shared with what could be read of A; else null"),
        Column("document", "string", "the document of A with the highest containment, ties by id; null if none"),
        Column("document_source", "string", "path of its file relative to A"),
        Column("containment", "double", "that containment, as --of says; 0 if nothing is shared, null if not testable"),
        Column("covered", "double", "share of the item's shingles that occur anywhere in A; null if not testable"),
    ),
)  # fmt: skip

SPANS = Table(
    "spans",
    "One row per run of tokens that an item, `found` or `part`, has in common with its document. Tokens and characters"
    " are counted from 0, characters in the text without markup. Ends are exclusive.",
    (
        Column("item", "string", "as in `items`"),
        Column("document", "string", "as in `items`"),
        Column("item_token", "int", "its tokens in the item"),
        Column("item_token_end", "int", "its tokens in the item"),
        Column("item_char", "int", "its characters in the item"),
        Column("item_char_end", "int", "its characters in the item"),
        Column("document_token", "int", "its tokens in the document"),
        Column("document_token_end", "int", "its tokens in the document"),
        Column("document_char", "int", "its characters in the document"),
        Column("document_char_end", "int", "its characters in the document"),
        Column("excerpt", "string", "the run in the document, its first 300 characters"),
    ),
)

SUPPRESSED = Table(
    "suppressed",
    "One row per shingle of B that more than `against.max_document_frequency` documents of A have.",
    (
        Column("shingle", "string", "its tokens, separated by blanks"),
        Column("documents", "long", "documents of A that have it; those with the same content count once"),
    ),
)

MATRIX = Table(
    "matrix",
    "One row per part of B and part of A: files or folders, as --by says. The verdicts are those against this part of A"
    " alone.",
    (
        Column("source_b", "string", "file or folder of B, with B itself before a folder"),
        Column("source_a", "string", "file or folder of A, with A itself before a folder"),
        Column("items", "long", "items of this part of B"),
        Column("testable", "long", "how many of them could be judged"),
        Column("found", "long", "of these, those found in a document of this part of A"),
        Column("part", "long", "of these, those that only share something with a document of this part of A"),
        Column("clean", "long", "of these, those that share nothing with any document of this part of A"),
    ),
)

REJECTED = Table(
    "rejects", "One row per record, or file, of A or B that was not compared.",
    (Column("collection", "string", "`A` or `B`"), *REJECTS.columns),
)  # fmt: skip

AGAINST = {table.name: table for table in (ITEMS, SPANS, SUPPRESSED, MATRIX, REJECTED)}
"""The tables that are written, by name."""

READ_ITEMS = working(
    "read_items",
    "source string, split long, seq long, doc_id string, reason string, detail string, excerpt string, text string",
    "One row per record of B: its text, or the reason why there is none.",
)

SHARED = working(
    "shared",
    "what string, source string, split long, seq long, doc_id string, reason string, detail string, excerpt string,"
    " content_fingerprint binary, n_shingles int, tokens array<int>, numbers array<int>, keys array<long>,"
    " begins array<int>, ends array<int>, region_starts array<int>, regions array<string>",
    "The result of one pass over A. `what` is the kind of row. `document`: a document that has a shingle of B. For each"
    " place it has the token, the number of the shingle or, if only a filter was asked, its fingerprint, its first"
    " character and the one after its last; and it has pieces of the text around the places, each with its first"
    " character. `reject`: a record that cannot be read. `count`: `seq` records were read from a split, one row per"
    " batch. Columns that a kind of row does not have are null.",
)


PASSAGES = Table(
    "passages",
    "One row per passage: a run of at least `passages.min_tokens` tokens whose windows all stand at the same places. A"
    " longer run that fewer documents share is divided where another document joins. Most occurrences first.",
    (
        Column("passage_id", "string", "BLAKE2b of the hashes of its tokens, 32 hex digits: equal for equal tokens"),
        Column("tokens", "int", "its tokens"),
        Column("documents", "int", "documents in which it occurs"),
        Column("occurrences", "long", "places at which it occurs; they may overlap within a document"),
        Column("text", "string", "its text at the first place, the first 1,000 characters"),
    ),
)

OCCURRENCES = Table(
    "occurrences",
    "One row per occurrence of a passage. Tokens and characters are counted from 0, characters in the text without"
    " markup. Ends are exclusive.",
    (
        Column("passage_id", "string", "as in `passages`"),
        Column("doc_id", "string", "id of the document; `source#record` where it has none or an earlier one has it"),
        Column("token", "int", "its tokens"),
        Column("token_end", "int", "its tokens"),
        Column("char", "int", "its characters"),
        Column("char_end", "int", "its characters"),
        Column("first", "boolean", "whether this place is the first by the order of `keep.policy`"),
        Column("cut", "int", "its tokens that may be cut"),
    ),
)

CUTS = Table(
    "cuts",
    "One row per run of tokens that may be cut: repeated windows cover it, and none of them is at its first place.",
    OCCURRENCES.columns[1:-2],
)

REPEATING = Table(
    "repeating", "One row per document in which a repeated window stands.",
    (
        OCCURRENCES.columns[1],
        Column("source", "string", "path of its file, as in `documents` of a run"),
        Column("record", "long", "ordinal of the record in the file, from 1"),
        Column("tokens", "int", "its tokens"),
        Column("repeated", "int", "tokens that a repeated window covers"),
        Column("cut", "int", "tokens that may be cut"),
        Column("dropped", "boolean", "whether fewer than `passages.min_left` tokens are left: it is not written"),
    ),
)  # fmt: skip

PASSAGE_TABLES = {table.name: table for table in (PASSAGES, OCCURRENCES, CUTS, REPEATING, REJECTS)}
"""The tables that are written, by name."""

HASHED = working(
    "hashed",
    "source string, split long, seq long, doc_id string, url string, reason string, detail string, excerpt string,"
    " text string, n_tokens int, hashes array<long>",
    "One row per record: its text and the hashes of its tokens, or the reason why there is none. On Spark `hashes` is"
    " empty: texts travel, and are hashed where they arrive.",
)
