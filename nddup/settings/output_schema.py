"""The sections that do not decide what is found: what is written beside the tables, what an engine may take."""

from typing import Literal

from pydantic import Field, field_validator

from nddup.settings.section import Section
from nddup.settings.sizes import parse_size


class OutputConfig(Section):
    """What is written besides the tables."""

    kept: Literal["none", "as-input", "jsonl", "parquet", "xml"] = Field(
        "none",
        description="write the kept documents themselves: `as-input`, as they came, in files of the same names; or in"
        " this form",
    )
    tagged: Literal["none", "as-input"] = Field(
        "none", description="write the inputs again, every document with what became of it"
    )
    context: bool = Field(
        default=False, description="write context.fimi: a feature a line, as the doc_keys of the documents that hold it"
    )
    report: bool = Field(default=True, description="write report/index.html, the run as a page")
    texts: int = Field(
        2_000, ge=0, description="how many documents' texts are stored for the report, 20,000 characters each"
    )
    texts_read: int | str = Field(
        4 << 30, description="stored bytes of the files that may be read again for these texts"
    )

    @field_validator("texts_read")
    @classmethod
    def _bytes(cls, value: int | str) -> int:
        return parse_size(value)


class LocalConfig(Section):
    """The embedded engine: one machine, no JVM."""

    memory: int | str | None = Field(
        None,
        description="what a run may take; by default three quarters of the machine's memory. A collection that needs"
        " more is left to Spark",
    )
    processes: int | None = Field(
        None, ge=1, le=1024, description="worker processes and threads; by default the cores there are"
    )

    @field_validator("memory")
    @classmethod
    def _bytes(cls, value: int | str | None) -> int | None:
        return None if value is None else parse_size(value)
