"""Rules by which a record becomes text, and the text a sketch. Consumers carry them to the workers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nddup.reading.records import EncodedText, Markup, Part, PlainText, Record, read_encoded, read_text

if TYPE_CHECKING:  # `inspect` reads texts and makes no sketches
    from nddup.sketching.recipe import Recipe


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
        by_text: whether documents are one node only if their token sequences are equal; then these get a fingerprint.
    """

    recipe: "Recipe"
    text: TextRule
    min_tokens: int = 0
    left_out: bytes = b""
    lexicon: bytes = b""
    by_text: bool = False
