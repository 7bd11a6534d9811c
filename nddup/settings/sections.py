"""What every section of the settings is, and the short sections: tokens, shingles, `against`, `passages`."""

import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from nddup.sketching.respelling import IGNORED, in_order

if TYPE_CHECKING:
    Ignored: TypeAlias = str
else:  # the choices, read from where they are declared
    Ignored = Literal[tuple(IGNORED)]

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character; also what Python makes of a byte of a path that is not UTF-8."""


def plain_value(given: Any) -> Any:  # noqa: ANN401 - whatever a program gives
    """Return a value that a program gives as YAML would: numbers, arrays and columns of numpy, tuples, sets, paths.

    Example:
        >>> import numpy as np
        >>> plain_value([np.int64(100), np.float32(0.9)]), plain_value(("-score", "date"))
        ([100, 0.9], ['-score', 'date'])
    """
    if isinstance(given, os.PathLike):
        return os.fspath(given)
    if isinstance(given, list | tuple | set | frozenset):
        return [plain_value(one) for one in (sorted(given, key=str) if isinstance(given, set | frozenset) else given)]
    if getattr(given, "ndim", None) == 0 and hasattr(given, "item"):  # numpy is not loaded for this
        is_short = given.dtype.kind == "f" and given.dtype.itemsize < 8  # noqa: PLR2004 - bytes of Python's float
        return float(str(given)) if is_short else given.item()
    return plain_value(given.tolist()) if getattr(given, "ndim", None) == 1 and hasattr(given, "tolist") else given


def _require_path(value: str | None) -> str | None:
    """Return the path of a setting, None for none. ValueError: it is empty, or no file can have such a name."""
    if value is not None and (not value or "\0" in value):
        raise ValueError(f"expected a path, or null for none, got {value!r}")
    return value


FilePath: TypeAlias = Annotated[str | None, AfterValidator(_require_path)]
"""A path, or null for none."""


class Section(BaseModel):
    """A frozen section that refuses unknown keys and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _are_plain(cls, values: object) -> object:
        return {key: plain_value(value) for key, value in values.items()} if isinstance(values, dict) else values

    @field_validator("*")
    @classmethod
    def _fits_a_table(cls, value: object) -> object:
        """Refuse numbers that a 64-bit column of Spark cannot hold, and texts that UTF-8 cannot: a run stores them."""
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise ValueError("expected a number of fewer than 19 digits")
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and SURROGATE.search(text):
                raise ValueError("expected UTF-8, got bytes that are no character in it")
        return value


class AgainstConfig(Section):
    """`nddup against`: which shingles count, and which items can be judged."""

    max_document_frequency: int = Field(
        1_000,
        ge=1,
        description="a shingle in more documents of A than this, of distinct content, is suppressed and listed",
    )
    min_shingles: int = Field(
        5, ge=1, description="an item of fewer distinct shingles, or with fewer left after suppression, is not testable"
    )


class PassagesConfig(Section):
    """`nddup passages`: which runs of tokens are repeated, and what is done with their other copies."""

    min_tokens: int = Field(
        50,
        ge=1,
        le=10_000,
        description="tokens of the shortest run that counts as repeated; far below 50, common phrases are",
    )
    within: bool = Field(
        default=False, description="also find what is repeated within one document; then only its first place stays"
    )
    replace: str = Field(
        "", description="text in the place of what was cut; by default none, and a blank where words would touch"
    )
    whole_sentences: bool = Field(
        default=False,
        description="cut a sentence only if every token of it may be cut, so that no sentence is left in part",
    )
    min_left: int = Field(
        1,
        ge=0,
        description="a document left with fewer tokens after cutting is dropped and listed; 0: none is; at most"
        " min_tokens: no first place is lost",
    )

    @model_validator(mode="after")
    def _keeps_first_places(self) -> Self:
        if self.min_left > self.min_tokens:
            raise ValueError(f"min_left {self.min_left}: expected at most min_tokens, {self.min_tokens}")
        return self


class ShingleConfig(Section):
    """What a feature is. Longer shingles match less often by chance, but each edit changes more of them."""

    length: int = Field(5, ge=1, le=1000, description="tokens per shingle; one changed word changes so many shingles")
    offset: int = Field(1, ge=1, le=1000, description="tokens from the start of one shingle to the start of the next")
    unit: Literal["word", "char"] = Field("word", description="what a token is: a word, or a single character")


class TokensConfig(Section):
    """What tokens leave out: texts that differ only in it are equal."""

    ignore: list[Ignored] = Field(
        default_factory=list,
        description="such as `[numbers, width]`; " + "; ".join(f"`{name}`: {says}" for name, says in IGNORED.items()),
    )

    @field_validator("ignore")
    @classmethod
    def _in_order(cls, value: list[str]) -> list[str]:
        return list(in_order(value))

    @property
    def ignored(self) -> tuple[str, ...]:
        """`ignore` as the kernels take it."""
        return tuple(self.ignore)
