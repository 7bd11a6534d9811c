"""Consumers that read records a second time, and the choice of the documents that a report reads again.

    Counts             found records -> COUNTED        how many there are in each part of a file
    Columns            found records -> COLUMN_VALUES  the values of columns that the run did not store
    Contents           found records -> CONTENTS       the kept documents, to be written
    Texts              found records -> FOUND_TEXTS    texts shown to a person, or compared by edit distance
    Tokens             found records -> TOKENS         texts that confirm pairs, as token hashes or as shingle ids

`choose_documents` chooses whole clusters, a few documents of each, in files of bounded size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record
from nddup.reading.records import content_fingerprint, fingerprint_bytes, record_text, spell_page
from nddup.scanning.found import Batches, LocatedRecord, TextRule, join_encoded
from nddup.scanning.record_blocks import Block, Places, divide
from nddup.tables import COLUMN_VALUES, CONTENTS, COUNTED, FOUND_TEXTS, TOKENS, Table

if TYPE_CHECKING:
    from nddup.sketching.recipe import Recipe


@dataclass(frozen=True)
class Counts:
    """The number of records in each part of a file. Those of blocks are not read."""

    table: ClassVar[Table] = COUNTED

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield COUNTED, one batch per list."""
        del head
        for records in lists:
            if isinstance(records, Block):
                lasts = np.array([high - 1 for _, high in records.parts])
                source, split, seq = records.source.take(pa.array(lasts)), records.split[lasts], records.seq[lasts]
            else:
                places = [(one.source, one.split, one.seq) for one in records]
                source, split, seq = (np.array(column) for column in zip(*places, strict=True))
            yield COUNTED.batch([pa.array(source, pa.string()), pa.array(split), pa.array(seq + 1)])


@dataclass(frozen=True)
class Columns:
    """The values at the paths `policy` of the format, keyed by the record's place."""

    table: ClassVar[Table] = COLUMN_VALUES

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield COLUMN_VALUES, one batch per list."""
        del head
        for records in lists:
            rows = [
                (one.source, one.split, one.seq, getattr(one.record, "reason", None), one.record.policy or None)
                for one in records
            ]
            columns = zip(zip(*rows, strict=True), COLUMN_VALUES.arrow, strict=True)
            yield COLUMN_VALUES.batch([pa.array(column, field.type) for column, field in columns])


@dataclass(frozen=True)
class Contents:
    """The decoded content of every record, with its markup, keyed by the record's place. Rejects are left out.

    For JSON lines the original line is included, so that a kept document can be written with all its keys.

    Args:
        form: `output.kept`; of xml, whose readers take each content for a page, it is spelled as one.
    """

    rule: TextRule
    form: str = "jsonl"
    table: ClassVar[Table] = CONTENTS

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield CONTENTS, one batch per list."""
        encoding = head.encoding if head is not None and head.format.kind == "jsonl" else None
        for records in lists:
            read = [one for one in records if isinstance(one.record, Record)]
            texts = [self._spell(one.record) for one in read if isinstance(one.record, Record)]
            lines = [one.chunk.decode(encoding, "replace").strip() if encoding else None for one in read]
            columns = {
                "source": pa.array([one.source for one in read], pa.string()),
                "split": pa.array([one.split for one in read], pa.int64()),
                "seq": pa.array([one.seq for one in read], pa.int64()),
                "content": pa.array(texts, pa.string()),
                "line": pa.array(lines, pa.string()),
            }
            yield CONTENTS.batch([columns[name] for name in CONTENTS.names])

    def _spell(self, record: Record) -> str:
        if self.form == "xml":
            return spell_page(record, self.rule.charset, self.rule.markup)
        return record_text(record, self.rule.charset, "text")


@dataclass(frozen=True)
class Texts:
    """The text of records, keyed by their source and the fingerprint of their content.

    These two identify a record, not its place. So it does not matter how a file is split the second time, and a file
    that has changed gives no text instead of a wrong one.

    Args:
        fingerprints: fingerprints of the wanted contents; None for all. No text is made of the others.
        characters: most characters of each text; None for all.
        places: where the wanted contents are, if it is known; lines elsewhere are not read.
    """

    rule: TextRule
    fingerprints: frozenset[bytes] | None = None
    characters: int | None = None
    places: Places | None = None
    table: ClassVar[Table] = FOUND_TEXTS

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield FOUND_TEXTS, one batch per list; a batch may be empty."""
        del head
        for records in lists:
            sources, marks, texts = [], [], []
            plain, others = divide(records, self.rule, self.places)
            for source, text, content in zip(*plain, strict=True):
                fingerprint = fingerprint_bytes(content)
                if self.fingerprints is None or fingerprint in self.fingerprints:
                    sources.append(source)
                    marks.append(fingerprint)
                    texts.append(text.decode()[: self.characters])
            for one in others:
                if not isinstance(one.record, Record):
                    continue
                fingerprint = content_fingerprint(one.record)
                if self.fingerprints is None or fingerprint in self.fingerprints:
                    sources.append(one.source)
                    marks.append(fingerprint)
                    texts.append(self.rule.read(one.record).text[: self.characters])
            columns = pa.array(sources, pa.string()), pa.array(marks, pa.binary()), pa.array(texts, pa.string())
            yield FOUND_TEXTS.batch(columns)


UNSTEADY = (
    "the input changed meanwhile; run again (a DataFrame whose rows differ each time must be persisted), or with"
    " pairs.confirm=none, which reads it once"
)
"""What to do where a text is not found again."""


@dataclass(frozen=True)
class Tokens:
    """What confirms pairs, of records: token hashes in order, or distinct shingle ids, keyed by their fingerprint.

    So a file that has changed gives no row instead of a wrong one, and records with equal rows have one key.

    Args:
        recipe: which shingles are compared, all of a text, and which tokens.
        confirm: `edit`, tokens are compared; or `resemblance`, shingles are.
        contents: fingerprints of the wanted contents; None for all. Other records are not tokenised.
        places: where these are, if it is known; lines elsewhere are not read, and those there are not compared.
    """

    rule: TextRule
    recipe: "Recipe"
    confirm: str
    contents: frozenset[bytes] | None = None
    places: Places | None = None
    table: ClassVar[Table] = TOKENS

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield TOKENS, one batch per list; a batch may be empty."""
        del head
        for records in lists:
            (_, texts, contents), others = divide(records, self.rule, self.places)
            wanted = self.contents
            if wanted is not None and self.places is None:
                texts = [
                    text for text, content in zip(texts, contents, strict=True) if fingerprint_bytes(content) in wanted
                ]
            texts += [
                self.rule.read_encoded(one.record).text
                for one in others
                if isinstance(one.record, Record) and (wanted is None or content_fingerprint(one.record) in wanted)
            ]
            rows, marks = self._read(*join_encoded(texts))
            ids = pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values.view(np.int64)))
            yield TOKENS.batch([pa.array(marks, pa.binary()), ids])

    def _read(self, data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> tuple[Ragged, list[bytes]]:
        from nddup.sketching.recipe import make_sketches  # noqa: PLC0415 - `check` and `show` make no sketches
        from nddup.sketching.rolling_hash import fingerprint_rows, hash_rows  # noqa: PLC0415

        if self.confirm == "edit":
            rows = hash_rows(data, bounds, self.recipe.unit, self.recipe.ignore)
        else:
            whole = make_sketches(data, bounds, self.recipe)
            rows = Ragged(whole.offsets, whole.ids)
        return rows, fingerprint_rows(rows)


LARGEST = 100
"""Number of largest clusters whose texts come before those of the sample."""

CHARACTERS = 20_000
"""Maximum number of characters of a text that are stored for the report; the rest is cut."""

EACH = 8
"""Documents per cluster whose text is stored."""


@dataclass(frozen=True)
class TextChoice:
    """Documents whose text is stored: doc_id -> (source, fingerprint of the content); and their clusters."""

    documents: Mapping[str, tuple[str, bytes]]
    clusters: Sequence[str]
    beyond_files: int
    """Clusters left out because their files would exceed the bytes to be read again."""


def add_pairs(
    choice: TextChoice, rows: Iterable[Mapping[str, Any]], sizes: Mapping[str, int], *, most_bytes: int
) -> TextChoice:
    """Add both documents of each pair for which the files that hold all chosen documents stay small enough.

    Args:
        rows: the pairs, with `doc_a`, `source_a`, `content_a` (the content's fingerprint), and the same for b.
        sizes: stored bytes of each source.
        most_bytes: most stored bytes of all files that hold the documents.
    """
    documents = dict(choice.documents)
    files = {source for source, _ in documents.values()}
    for row in rows:
        ends = {row[f"doc_{end}"]: (row[f"source_{end}"], bytes(row[f"content_{end}"])) for end in "ab"}
        wider = files | {source for source, _ in ends.values()}
        if sum(sizes[source] for source in wider) <= most_bytes:
            documents |= ends
            files = wider
    return replace(choice, documents=documents)


def choose_documents(rows: Iterable[Any], sizes: Mapping[str, int], *, most: int, most_bytes: int) -> TextChoice:
    """Choose whole clusters in their order, within limits on the number of documents and the size of their files.

    Args:
        rows: of `nddup.stages.report_texts.list_shown`, in any order.
        sizes: stored bytes of each source.
        most_bytes: most stored bytes of all files that hold them.

    Returns:
        The choice. A cluster is taken only if all its shown documents fit; clusters after one that does not are tried.

    Cost: one sort of the rows.
    """

    def order(row: Any) -> tuple[int, int, str, int]:  # noqa: ANN401 - a Row
        return row["turn"], -row["size"] if row["turn"] == 0 else 0, row["cluster_id"], row["place"]

    documents: dict[str, tuple[str, bytes]] = {}
    files: set[str] = set()
    taken, beyond = [], 0
    for cluster, members in groupby(sorted(rows, key=order), key=lambda row: row["cluster_id"]):
        chosen = {row["doc_id"]: (row["source"], bytes(row["content_fingerprint"])) for row in members}
        wider = files | {source for source, _ in chosen.values()}
        if len(documents.keys() | chosen.keys()) > most:
            continue
        if sum(sizes[source] for source in wider) > most_bytes:
            beyond += 1
            continue
        documents |= chosen
        files = wider
        taken.append(cluster)
    return TextChoice(documents, taken, beyond)
