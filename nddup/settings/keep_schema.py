"""The section `keep`: which of several near-duplicates is kept."""

import reprlib
from typing import Literal

from pydantic import Field, field_validator

from nddup.matching.preference import Order, read_columns, read_glob, read_order
from nddup.settings.section import Section

WORDS = ("longest", "first-id", "first", "shortest-url")


class KeepConfig(Section):
    """Which of several near-duplicates is kept."""

    policy: Literal["longest", "first-id", "first", "shortest-url"] | list[str] = Field(
        "longest",
        description="which document is preferred: one of these orders, or a list of columns to sort by, `-` for"
        " descending, `:number` or `:text` for the type: `[-score:number, date, -length]`",
    )
    prefer: list[str] | None = Field(
        None, description="globs of `source`: documents of an earlier glob are preferred to those of a later one"
    )

    @field_validator("policy", mode="before")
    @classmethod
    def _is_word_or_columns(cls, value: object) -> object:
        """Refuse other values with one message instead of one for each form."""
        if value in WORDS or (isinstance(value, list) and all(isinstance(column, str) for column in value)):
            return value
        expected = f"expected {', '.join(WORDS)}, or columns such as [-score:number, date]"
        raise ValueError(f"{expected}; got {reprlib.repr(value)}")

    @field_validator("policy")
    @classmethod
    def _has_columns(cls, value: str | list[str]) -> str | list[str]:
        if isinstance(value, list) and not read_columns(value):
            raise ValueError("expected a word or columns such as [-score:number, date], got none")
        return value

    @field_validator("prefer")
    @classmethod
    def _are_globs(cls, value: list[str] | None) -> list[str] | None:
        for glob in value or ():
            read_glob(glob)
        return value

    @property
    def order(self) -> Order:
        """The order in which documents are preferred."""
        return read_order(self.policy, self.prefer)
