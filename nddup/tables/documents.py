"""The table `documents`, and the facts of a document that other tables have too."""

from typing import Any, Final

from nddup.tables.declared import Column, Table

_OF_CONTENT: Final[Any] = {"of_content": True, "proved_by": "records"}
_CAPTURED: Final[Any] = {"proved_by": "records", "may_lack": True, "came_later": True}

CAPTURE = (
    Column("date", "string",
           "of a capture in a WARC or ARC file: UTC, `2024-05-01T12:00:00Z`; null for other formats, as the columns"
           " that follow", **_CAPTURED),
    Column("status", "int", "its HTTP status; null for a record without one, such as a `resource`", **_CAPTURED),
    Column("media_type", "string", "its media type, without parameters", **_CAPTURED),
    Column("target_uri", "string", "the address that was fetched, as written", **_CAPTURED),
    Column("payload_digest", "string", "WARC-Payload-Digest, as written", **_CAPTURED),
    Column("file_offset", "long",
           "where the record begins in its file, or in a compressed file the member that begins with it; null if it"
           " begins inside a member", **_CAPTURED),
    Column("record_type", "string", "`response`, `resource`, `conversion`, or `revisit`: a copy of what it refers to",
           **_CAPTURED),
)  # fmt: skip
"""The facts of a document in an archive of the web."""

UNREAD = (
    Column("unread_bytes", "long",
           "bytes of the record that are not read: those that no encoding decodes, characters of a Unicode after that"
           " of the table of letters, and parts; 0: all read", **_OF_CONTENT, is_stored=True, may_lack=True),
    Column("unread_parts", "int", "parts that are not read, such as attachments; 0: all read", **_OF_CONTENT,
           is_stored=True, may_lack=True),
)  # fmt: skip
"""What a record holds that was not read. All of it is covered by `content_fingerprint`."""

PARENT = Column("parent", "string", "the id of the message that holds this one; null for any other record",
                is_stored=True, proved_by="records", may_lack=True)  # fmt: skip

DOCUMENTS = Table(
    "documents", "One row for each document, in collection order.",
    doing="number the documents and collapse equal sketches",
    columns=(
        Column("doc_key", "long",
               "rank of the record in the collection, in the order (source, record), from 0; rejects leave gaps",
               proved_by="accounting"),
        Column("doc_id", "string",
               "the id in the record; `source#record` where it has none, or where an earlier one of other content has"
               " it", is_stored=True, proved_by="records"),
        Column("url", "string", "the address in the record, or null", is_stored=True, proved_by="records",
               may_lack=True),
        Column("source", "string",
               "path of the file relative to its INPUT, extended by parent folders where two would be equal",
               is_stored=True, proved_by="accounting"),
        Column("record", "long", "ordinal of the record in its file, from 1", is_stored=True, proved_by="accounting"),
        Column("n_tokens", "int", "number of tokens of the text", **_OF_CONTENT, is_stored=True),
        Column("n_features", "int", "number of distinct shingles, before any are selected", of_content=True,
               is_stored=True, proved_by="accounting"),
        Column("content_fingerprint", "binary",
               "BLAKE2b-128 of the raw bytes of the content, and of what was not read of it", **_OF_CONTENT,
               is_stored=True),
        Column("token_fingerprint", "binary",
               "BLAKE2b-128 of what confirms pairs: the token hashes of the text in order (`edit`), or its distinct"
               " shingle ids, ascending (`resemblance`); null without `pairs.confirm`", **_OF_CONTENT, may_lack=True),
        Column("group", "string",
               "smallest id of the documents with the same sketch; with `pairs.confirm`, of the same"
               " `token_fingerprint`", proved_by="groups"),
        Column("sketch", "array<long>", "ids of the features kept, 64 bits each, ascending as unsigned numbers",
               of_content=True, proved_by="accounting"),
        Column("signature", "array<long>", "ids in the order of their slots, for kinds that have slots; else null",
               **_OF_CONTENT, is_stored=True, may_lack=True, came_later=True),
        Column("policy", "array<string>",
               "the values, in order, of those columns of `keep.policy`, `keep.same` and `keep.ledger` that are read"
               " from the record; else null", is_stored=True, proved_by="records", may_lack=True, came_later=True),
        *UNREAD, PARENT, *CAPTURE,
    ),
)  # fmt: skip
