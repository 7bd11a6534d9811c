"""The section of `nddup against`."""

from pydantic import Field

from nddup.settings.section import Section


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
