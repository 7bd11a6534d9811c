"""Records and rejects found in files, with their places, and the protocol of consumers that make a table of them.

Consumers carry to the workers the rules by which a record becomes text, and the text a sketch.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from nddup.reading.formats import FileHead, Format
from nddup.reading.outcomes import Record, Reject
from nddup.reading.records import EncodedText, Markup, Part, PlainText, read_encoded, read_text
from nddup.scanning.input_files import columns_of
from nddup.tables import Table

if TYPE_CHECKING:  # `inspect` reads texts and makes no sketches
    from nddup.sketching.recipe import Recipe
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Batches = Iterator[pa.RecordBatch]

BATCH_BYTES, BATCH_RECORDS = 16 << 20, 1_000
"""Bytes of content, and records, that are passed on together and sketched in one call."""


class LocatedRecord(NamedTuple):
    """A record, or the reject that stands for it, and its place: number `seq` (from 0) in a split of a source.

    A split is the offset at which a part of the file starts; a file read from its start is one split, 0. `chunk` holds
    the bytes between two separators that contained the record; it is empty if the format has no separator.
    """

    source: str
    split: int
    seq: int
    record: Record | Reject
    chunk: bytes


class RecordLimits(NamedTuple):
    """The longest record in bytes."""

    max_record: int


class Consumer(Protocol):
    """Makes the rows of one table from found records. An engine sends it to its workers, so it must be picklable."""

    @property
    def table(self) -> Table:
        """The table whose rows it makes."""

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield the rows of one task.

        Args:
            lists: everything the task reads, one list at a time, in order.
            head: the head that all files of the task share; None for texts passed in (`given_texts`).
        """


def with_source(record: Record | Reject, source: str, declared: Format) -> Record | Reject:
    """Return a record with what its format takes from the name of its file.

    That is the beginning of its id, if it has one that was not made up of the name, and the columns of the policy that
    the record itself does not have.
    """
    has_policy = declared.policy and (isinstance(record, Record) or record.policy)
    if has_policy and (columns := columns_of(source)):
        known = record.policy or (None,) * len(declared.policy)
        record = replace(record, policy=tuple(map(partial(_or_column, columns), known, declared.policy)))
    if not declared.prefixes_ids or not record.doc_id:
        return record
    if not isinstance(record, Record) or record.parent is None:
        return replace(record, doc_id=f"{source}/{record.doc_id}")
    if record.parent.startswith(f"{source}#"):
        return record
    return replace(record, doc_id=f"{source}/{record.doc_id}", parent=f"{source}/{record.parent}")


def _or_column(columns: Mapping[str, str | None], value: str | None, path: str) -> str | None:
    named = path.split("|", maxsplit=1)[0]  # of an element or an attribute
    return columns.get(named) if value is None else value


def in_batches(records: Iterable[LocatedRecord], declared: Format) -> Iterator[list[LocatedRecord]]:
    """Group records in lists of at most `BATCH_RECORDS` records and about `BATCH_BYTES` of content; none is empty.

    They get what the format takes from the names of their files (`with_source`).
    """
    is_named = declared.prefixes_ids or bool(declared.policy)
    batch: list[LocatedRecord] = []
    size = 0
    for one in records:
        batch.append(one._replace(record=with_source(one.record, one.source, declared)) if is_named else one)
        size += sum(map(len, one.record.fields)) if isinstance(one.record, Record) else 0
        if size >= BATCH_BYTES or len(batch) >= BATCH_RECORDS:
            yield batch
            batch, size = [], 0

    if batch:
        yield batch


@dataclass(frozen=True)
class TextRule:
    """How the text of a record is extracted; see `nddup.reading.records.read_text`."""

    markup: Markup = "auto"
    charset: str | None = None
    part: Part = "all"

    def read(self, record: Record) -> PlainText:
        """Return the plain text of a record, and how much of it could not be decoded."""
        return read_text(record, self.charset, self.markup, self.part)

    def read_encoded(self, record: Record) -> EncodedText:
        """Do as `read`, with the text in UTF-8."""
        return read_encoded(record, self.charset, self.markup, self.part)


@dataclass(frozen=True)
class SketchRule:
    """How a record becomes a sketch. Sketches are comparable only if equal recipes and text rules made them.

    Attributes:
        recipe: how a text becomes a sketch.
        text: how a record becomes a text.
        min_tokens: a text of fewer tokens is a reject.
        left_out: ids of the shingles that are ignored, as the bytes of ascending uint64, which are fast to pickle.
        lexicon: ids of the terms that are used, in the same form.
        confirm: `pairs.confirm`: documents are one node only if what confirms pairs is equal; that gets a fingerprint.
    """

    recipe: "Recipe"
    text: TextRule
    min_tokens: int = 0
    left_out: bytes = b""
    lexicon: bytes = b""
    confirm: str = "none"


def whole_recipe(recipe: "Recipe") -> "Recipe":
    """Return the recipe that keeps all distinct shingle ids of a text: those that the sketches of `recipe` sample."""
    permutation = recipe.permutation if recipe.permutation != "datasketch" else "mix"  # which permutes slots only
    return replace(recipe, kind="min-s", size=1 << 62, growth="fixed", permutation=permutation, tagged=True)


def text_buffers(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Concatenate texts as UTF-8, with the bounds of each.

    Returns:
        Shape (bytes,) uint8, and (n + 1,) int64: text i is `data[bounds[i]:bounds[i + 1]]`. For no texts, no bytes and
        one bound.

    Raises:
        UnicodeEncodeError: for a text with a lone surrogate.

    Cost: two copies, a third of the time of an Arrow array of the texts.
    """
    return join_encoded([text.encode() for text in texts])


def join_encoded(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Concatenate texts that are already UTF-8; returns as `text_buffers`. Cost: one copy."""
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
    return np.frombuffer(b"".join(texts), np.uint8), bounds
