"""The sections that do not affect what is found: what is written besides the tables, and what an engine may use."""

from typing import Literal

from pydantic import Field, field_validator

from nddup.settings.section import Section
from nddup.settings.sizes import parse_size


class OutputConfig(Section):
    """What is written besides the tables."""

    kept: Literal["none", "as-input", "jsonl", "parquet", "xml"] = Field(
        "none",
        description="write the kept documents themselves: unchanged, in files of the same names (`as-input`), or in the"
        " format named",
    )
    tagged: Literal["none", "as-input"] = Field(
        "none", description="write the inputs again, with the result added to every document"
    )
    context: bool = Field(
        default=False, description="write context.fimi: a line for each feature, the doc_keys of its documents"
    )
    report: bool = Field(default=True, description="write report/index.html, a page that shows the run")
    texts: int = Field(
        2_000, ge=0, description="most documents whose texts are stored for the report, 20,000 characters each"
    )
    texts_read: int | str = Field(
        4 << 30, description="most stored bytes of the input files that are read again for these texts"
    )

    @field_validator("texts_read")
    @classmethod
    def _bytes(cls, value: int | str) -> int:
        return parse_size(value)


class LocalConfig(Section):
    """The embedded engine: one machine, no JVM."""

    memory: int | str | None = Field(
        None,
        description="memory that a run may use; by default three quarters of the machine's. A collection that needs"
        " more is left to Spark",
    )
    processes: int | None = Field(
        None, ge=1, le=1024, description="worker processes and threads; by default the available cores"
    )

    @field_validator("memory")
    @classmethod
    def _bytes(cls, value: int | str | None) -> int | None:
        return None if value is None else parse_size(value)
