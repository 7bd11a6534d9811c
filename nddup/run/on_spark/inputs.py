"""The inputs of a run, kept so that later passes find the same records: a second pass, or the texts of a report."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.run.inputs_again import find_again
from nddup.scanning.collection import Collection
from nddup.scanning.found import Consumer, Limits
from nddup.scanning.read_again import Texts
from nddup.scanning.rules import TextRule
from nddup.scanning.text_choice import CHARACTERS
from nddup.settings.scan_rules import limits_of, text_rule
from nddup.spark import schemas
from nddup.spark.reading.scan import scan
from nddup.spark.reading.shown_texts import name_texts
from nddup.storage.run_folder import RunFolder
from nddup.storage.session_files import files_of


@dataclass(frozen=True)
class Inputs:
    """The files that were read, how their records become texts, and the settings under which Spark split them."""

    spark: SparkSession
    collection: Collection
    text: TextRule
    limits: Limits
    splitting: Mapping[str, str]

    @property
    def sizes(self) -> dict[str, int]:
        """Stored bytes of each source."""
        return {file.source: file.size for file in self.collection.listing.files}

    def scan(self, consumer: Consumer) -> DataFrame:
        """Return the rows that a consumer makes of all records, lazily."""
        return scan(self.spark, self.collection, consumer, files=files_of(self.spark), limits=self.limits)

    def find_texts(self, documents: Mapping[str, tuple[str, bytes]], characters: int | None = CHARACTERS) -> DataFrame:
        """Return STORED_TEXTS of these documents (doc_id -> source, fingerprint), lazily: only their files are read.

        A document that is no longer in its file has no row.
        """
        if not documents:
            return schemas.local_table(self.spark, schemas.STORED_TEXTS)

        schema = schemas.table("doc_id string, source string, content_fingerprint binary")
        rows = [(doc, *place) for doc, place in sorted(documents.items())]
        named = schemas.local_table(self.spark, schema, rows)
        sources = {source for source, _ in documents.values()}
        fingerprints = frozenset(fingerprint for _, fingerprint in documents.values())
        these = replace(self, collection=self.collection.only(sources))
        return name_texts(these.scan(Texts(self.text, fingerprints, characters)), F.broadcast(named))


def reopen_inputs(spark: SparkSession, folder: RunFolder) -> Inputs:
    """Open the inputs of a finished run, to read documents again.

    Raises:
        ConfigError: if an input is missing.
        NddupError: if a file was changed, added or removed since the run.
    """
    collection, config = find_again(folder, files_of(spark))
    return Inputs(spark, collection, text_rule(config), limits_of(config), splitting={})
