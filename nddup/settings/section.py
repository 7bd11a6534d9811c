"""The base class of all sections of the configuration."""

from pydantic import BaseModel, ConfigDict, field_validator


class Section(BaseModel):
    """A frozen section that refuses unknown keys and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @field_validator("*")
    @classmethod
    def _fits_a_table(cls, value: object) -> object:
        """Refuse numbers that a 64-bit column of Spark cannot hold."""
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise ValueError("expected a number of fewer than 19 digits")
        return value
