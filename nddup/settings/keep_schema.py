"""The section that says which of several near-duplicates stays."""

import reprlib
from typing import Literal

from pydantic import Field, field_validator

from nddup.matching.preference import Order, read_columns, read_glob, read_order
from nddup.settings.section import Section

WORDS = ("longest", "first-id", "first", "shortest-url")


class KeepConfig(Section):
    """Which of several near-duplicates stays."""

    policy: Literal["longest", "first-id", "first", "shortest-url"] | list[str] = Field(
        "longest",
        description="which document is preferred; or columns in order, `-` for the greater first, `:number` or `:text`:"
        " `[-score:number, date, -length]`",
    )
    prefer: list[str] | None = Field(
        None, description="globs of `source` in order: a document of an earlier one comes before any of a later one"
    )

    @field_validator("policy", mode="before")
    @classmethod
    def _is_word_or_columns(cls, value: object) -> object:
        """One message in place of one for each form."""
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
        """Which document comes first."""
        return read_order(self.policy, self.prefer)
