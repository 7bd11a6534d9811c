"""What all sections of the configuration have in common."""

from pydantic import BaseModel, ConfigDict, field_validator


class Section(BaseModel):
    """Frozen; an unknown key and a value of another type are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @field_validator("*")
    @classmethod
    def _fits_a_table(cls, value: object) -> object:
        """Refuse numbers that a 64-bit column of Spark cannot hold."""
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise ValueError("expected a number of fewer than 19 digits")
        return value
