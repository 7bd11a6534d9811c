"""What each column of a run's tables means: the text of the reference, complete by a test."""

from collections.abc import Mapping

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "documents": {
        "doc_key": "rank of the record in the collection, in the order (source, record), from 0; rejects leave gaps",
        "doc_id": "the id in the record; where it has none `source#record`",
        "url": "the address in the record, or null",
        "source": "path of the file relative to its INPUT, lengthened by parent folders where two would be equal",
        "record": "ordinal of the record in its file, from 1",
        "n_tokens": "tokens of the text",
        "n_features": "distinct shingles, before any is selected",
        "content_fingerprint": "BLAKE2b-128 of the raw bytes of the content",
        "group": "smallest id of the documents with the same sketch",
        "sketch": "ids of the features kept, 64 bits each, ascending as unsigned numbers",
        "signature": "ids in the order of their slots, for kinds that have slots; else null",
    },
    "rejects": {
        "source": "as in `documents`",
        "record": "as in `documents`; of a whole file 1",
        "doc_id": "the id, where it could be read",
        "reason": "one or two words: `malformed`, `truncated`, `repeated id`, `too large`, `damaged`, `short`, …",
        "detail": "what exactly was wrong",
        "excerpt": "the first characters of the record",
    },
    "pairs": {
        "doc_a": "the smaller id, compared as bytes",
        "doc_b": "the larger id",
        "overlap": "features common to both sketches",
        "resemblance": "estimate of the share of common shingles in all of both; null where the kind gives none",
        "containment_a": "estimate of the share of a that is in b; null where the kind gives none",
        "containment_b": "estimate of the share of b that is in a; null where the kind gives none",
        "star": "whether the row stands for all pairs of two groups of equal sketches (`pairs.expand_limit`)",
    },
    "clusters": {
        "cluster_id": "16 hex digits of SHA-256 over the sorted ids, each followed by a zero byte",
        "support": "features common to all members; may be 0 in the modes `partition` and `components`",
        "size": "members, at least 2",
        "members": "their ids, sorted",
        "component": "smallest id of the connected component of the pairs that holds the cluster",
        "coverage": "`all`: every maximal set of the component is listed; `pairs`: every pair is in a maximal set;"
        " `documents`: every document with a near-duplicate is in a set; or the name of the mode",
    },
    "members": {
        "cluster_id": "as in `clusters`",
        "doc_id": "a member",
        "representative": "whether the keep policy prefers it to the other members; in `partition` the kept document",
    },
    "keep": {
        "doc_id": "every document, once",
        "kept": "whether it stays",
        "duplicate_of": "the kept near-duplicate of highest resemblance; null where it stays",
        "reason": "`exact`: the same content; `equal`: the same sketch; `near`; null where it stays",
    },
    "false_components": {
        "component": "smallest id of a connected component that is not one family",
        "size": "its documents",
        "pairs": "pairs of them that are near-duplicates",
        "invented": "pairs of them that are not: what transitive closure would add",
        "exact": "false where pairs were led or cut: `invented` is then an upper bound",
    },
    "texts": {
        "doc_id": "a document of a cluster that the report shows",
        "text": "its text, markup removed, at most 20,000 characters",
    },
}
"""Table -> column -> meaning."""
