"""How a record becomes text, and the text a sketch. The rules travel to the workers with their consumers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nddup.reading.records import EncodedText, Markup, Part, PlainText, Record, read_encoded, read_text

if TYPE_CHECKING:  # `inspect` reads texts and makes no sketches
    from nddup.sketching.recipe import Recipe


@dataclass(frozen=True)
class TextRule:
    """Which text of a record counts; see `nddup.reading.records.read_text`."""

    markup: Markup = "auto"
    charset: str | None = None
    part: Part = "all"

    def read(self, record: Record) -> PlainText:
        """The plain text of a record, and how much of it could not be decoded."""
        return read_text(record, self.charset, self.markup, self.part)

    def read_encoded(self, record: Record) -> EncodedText:
        """Likewise, in UTF-8."""
        return read_encoded(record, self.charset, self.markup, self.part)


@dataclass(frozen=True)
class SketchRule:
    """How a record becomes a sketch. Two sketches compare only if equal recipes made them from equal texts.

    A text of fewer than `min_tokens` tokens is a reject. `left_out` are the ids of shingles that are passed over,
    `lexicon` those of the terms that are taken: bytes of ascending uint64, because bytes are pickled fast. `by_text`:
    documents are one node only if their token sequences are equal, so these get a fingerprint too.
    """

    recipe: "Recipe"
    text: TextRule
    min_tokens: int = 0
    left_out: bytes = b""
    lexicon: bytes = b""
    by_text: bool = False
