"""The model of `metrics.json`: the counts and measurements of a run. Other programs read that file too.

Every count has a field, and the fields are in the order of the file's keys. Rows, records and sets are the same
wherever and however often a run is made; seconds, bytes, settings, versions and `ENGINES_OWN` are not.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nddup.errors import OutputError

COUNTED = frozenset({"documents", "rejects", "pairs", "clusters", "keep"})
"""Tables whose rows every version counted."""

ENGINES_OWN = frozenset(
    {"seconds", "shuffle_bytes", "resumed", "candidates", "crowd", "pruned_to", "fpgrowth_components", "fpgrowth_fits"}
)
"""Keys whose values differ between the engines: measurements, and counts of each engine's own intermediate steps."""


def _is_missing(value: object) -> bool:
    """Return whether a key is left out of the file: a value that a run does not have is not written as null."""
    return value is None


class _Model(BaseModel):
    # A misspelled count is an error where metrics are made; `RunMetrics.read` ignores unknown keys.
    model_config = ConfigDict(frozen=True, extra="forbid")

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - of any field
        """Return a value by its key, as in the JSON: `metrics["rows"]` is `metrics.rows`.

        Raises:
            KeyError: for an unknown key.
        """
        if key not in type(self).model_fields:
            raise KeyError(key)
        return getattr(self, key)

    def __contains__(self, key: object) -> bool:
        """Return whether `dump` has this key."""
        field = type(self).model_fields.get(str(key))
        return field is not None and not (field.exclude_if is _is_missing and getattr(self, str(key)) is None)


class StageMetrics(_Model):
    """The measurements of every stage."""

    rows_in: dict[str, int] = Field(default_factory=dict, description="rows of the tables that the stage reads")
    rows_out: dict[str, int] = Field(default_factory=dict, description="rows of the tables that the stage writes")
    seconds: float = 0.0
    shuffle_bytes: int = Field(0, description="bytes written to shuffles")
    resumed: list[str] = Field(default_factory=list, description="tables reused from an earlier attempt")


class SkippedFile(_Model):
    """A file that was not read."""

    path: str
    why: str


class CountedFile(_Model):
    """A file, and how many of its records are meant."""

    path: str
    records: int


class FramedHost(_Model):
    """A host with pages that are more frame than text, such as menus."""

    host: str
    pages: int = Field(description="distinct texts")
    share: float = Field(description="of the sampled pages, those that share half of their shingles with half of all")


class LexiconMetrics(_Model):
    """The counts of the lexicon of a run."""

    terms: int = Field(description="terms in the lexicon")
    counted: int = Field(description="distinct terms of the collection")
    occurrences: int = Field(description="occurrences of all terms of the collection")
    commonest: int = Field(description="occurrences of the most frequent term")


class SketchMetrics(StageMetrics):
    """Reading and sketching."""

    bytes: int = Field(0, description="stored bytes of the files")
    files: int = 0
    respelled_names: int = Field(0, description="files whose name is not UTF-8: `source` has %E9 for such a byte")
    new_records: int | None = Field(
        None,
        exclude_if=_is_missing,
        description="in a run onto another: records of its own files; the others it took over",
    )
    snapshots: list[str] = Field(default_factory=list, description="tables among INPUT, as NAME@VERSION")
    skipped_files: list[SkippedFile] = Field(default_factory=list)
    unread_files: list[SkippedFile] = Field(
        default_factory=list, description="the first 100 files that gave no document, each with the reason"
    )
    changed_files: int = Field(0, description="files that changed or went away while the run read them")
    changed_names: list[str] = Field(default_factory=list, description="the first 100 of them")
    rejected: dict[str, int] = Field(default_factory=dict, description="rejects by reason")
    files_read_again: int = Field(
        0, description="files read again, from their start: a record was too long for Spark, or a part ended inside one"
    )
    stripped_records: int = Field(
        0, description="records with a text of unknown kind of which markup was removed: tags, references, a page"
    )
    stripped_files: list[CountedFile] = Field(
        default_factory=list, description="the first 100 files with such records, and how many each has"
    )
    guessed_records: int = Field(
        0, description="records whose encoding is a guess: nothing declares it, and few letters, or rare ones, tell it"
    )
    guessed_files: list[CountedFile] = Field(
        default_factory=list, description="the first 100 files with such records, and how many each has"
    )
    inside_records: int = Field(
        0, description="records with a text of unknown kind in which a page begins after other text: its scripts stay"
    )
    inside_files: list[CountedFile] = Field(
        default_factory=list, description="the first 100 files with such records, and how many each has"
    )
    unread_records: int = Field(0, description="documents that hold something that was not read")
    unread_bytes: int = Field(0, description="bytes of these that were not read")
    unread_parts: int = Field(0, description="attachments and other parts of these that were not read")
    nested_records: int = Field(0, description="records inside others: messages that a message holds")
    undecodable_records: int = Field(0, description="records in which bytes could not be decoded")
    median_tokens: int | None = Field(None, description="tokens of the median document; null without documents")
    made_up_ids: int = Field(0, description="documents whose record has no id, so that file#record is their id")
    renamed_ids: int = Field(
        0, description="documents whose id an earlier record of other content has, so that file#record is theirs"
    )
    left_out_shingles: int = Field(0, description="shingles above pairs.max_document_frequency, which were left out")
    undecodable_places: int = Field(0, description="bytes of the undecodable records, each of which became one U+FFFD")
    framed_hosts: list[FramedHost] = Field(
        default_factory=list, description="of the 32 hosts with the most texts, those with a share of .1 or more"
    )
    lexicon: LexiconMetrics | None = Field(None, exclude_if=_is_missing, description="for the kinds of words only")


class EditMetrics(_Model):
    """Pairs of sketches that are candidates, whose texts decide (`pairs.confirm`)."""

    compared: int = Field(description="pairs of distinct texts: candidates, or of crowded components the pairs")
    confirmed: int = Field(description="of these, pairs that reach pairs.threshold exactly, or pairs.edit_threshold")
    bounded: int = Field(description="pairs above the limit of work for one pair: a lower bound was compared")
    bounded_unconfirmed: int = Field(description="of these, pairs that were not confirmed: some may be near-duplicates")


class PairsMetrics(StageMetrics):
    """Finding the near-duplicates."""

    pruned_to: list[int] = Field(
        default_factory=list, description="postings after each round of pruning; empty on Spark"
    )
    distinct_sketches: int = 0
    postings: int = Field(0, description="(feature, sketch) rows before pruning")
    candidates: int = Field(0, description="pairs of sketches that met, except within heavy families")
    crowd: int = Field(0, description="heavy sketches: more than pairs.max_postings have one of their prefix features")
    limited: int = Field(
        0, description="sketches compared with few kept ones, for keep.max_lost in a component of too many pairs"
    )
    edits: EditMetrics | None = Field(None, exclude_if=_is_missing, description="where texts confirm pairs")


class ClustersMetrics(StageMetrics):
    """Components and their clusters."""

    components: int = 0
    largest_component: int = Field(0, description="distinct sketches of the largest component")
    fpgrowth_components: int = Field(0, description="components mined by FP-Growth")
    fpgrowth_fits: int = 0
    covered_components: int = Field(0, description="components past their budget, given by a cover")
    covered_clusters: int = 0
    led_components: int = Field(0, description="components of more than pairs.max_edges pairs, given by leaders")
    led_clusters: int = Field(0, description="clusters made around leaders")
    invented_pairs: int = Field(0, description="pairs that connected components would invent")
    most_invented: int = Field(0, description="the most of them in one component")
    bounded_components: int = Field(0, description="components whose number of invented pairs is an upper bound")
    unlisted_pairs: int = Field(
        0, description="of the invented pairs, those of the latter: near-duplicates or not, pairs does not list them"
    )
    spread_components: int = Field(0, description="components mined in several tasks")
    shares: int = Field(0, description="parts that the spread components were cut into")
    pairs_below_support: int = Field(0, description="pairs with fewer common features than clusters.support")


class KeepMetrics(StageMetrics):
    """The keep-list."""

    kept: int = 0
    removed: int = 0
    without_value: dict[str, int] = Field({}, description="by column of keep.policy, documents without a value")
    unparsable: dict[str, int] = Field({}, description="by column, documents whose value is not of the column's type")
    forced_kept: int = Field(0, description="documents that keep.force keeps")
    forced_removed: int = Field(0, description="documents that keep.force removes")
    forced_unknown: int = Field(0, description="ids of keep.force that are no document")
    forced_unknown_ids: list[str] = Field([], description="the first of them")
    prefer_idle: list[str] = Field([], description="globs of keep.prefer that are the first to match no source")
    listed_idle: list[str] = Field([], description="values listed in keep.policy that no document has")
    kept_pairs: int = Field(
        0, description="pairs of which both documents are kept: keep.force asks for it, or keep.max_lost forbids more"
    )


class TextsMetrics(StageMetrics):
    """The texts that the report shows."""

    clusters: int = Field(0, description="clusters whose texts are stored")
    beyond_files: int = Field(0, description="clusters left out because of output.texts_read")


class Stages(_Model):
    """The counts and measurements, by stage in the order of the run."""

    sketch: SketchMetrics
    pairs: PairsMetrics
    clusters: ClustersMetrics
    keep: KeepMetrics
    texts: TextsMetrics | None = Field(
        None, exclude_if=_is_missing, description="missing where the documents came from a DataFrame"
    )

    def by_name(self) -> dict[str, StageMetrics]:
        """Return the stages that the run had, by name, in its order."""
        stages = {"sketch": self.sketch, "pairs": self.pairs, "clusters": self.clusters, "keep": self.keep}
        return stages if self.texts is None else stages | {"texts": self.texts}


class RunMetrics(_Model):
    """`metrics.json` of a run."""

    records: int = Field(description="documents and rejects together")
    rows: dict[str, int] = Field(description="rows of each table of the run")
    empty_sketches: int = Field(description="documents with an empty sketch: in no pair; of equal contents one is kept")
    below_count: int = Field(description="documents with fewer features than a count as threshold: kept, in no pair")
    equal_sketches: int = Field(description="documents whose sketch another document has too")
    stages: Stages
    settings: dict[str, Any] = Field(description="settings of the run, by section, without secrets")
    unused: list[str] | None = Field(
        None, exclude_if=_is_missing, description="which settings that a run does not store have no effect on it"
    )
    recipe: str | None = Field(
        None, exclude_if=_is_missing, description="all that the sketches depend on; only equal recipes are comparable"
    )
    repository: Literal["rebuild", "frozen"] | None = Field(
        None, exclude_if=_is_missing, description="for the tables of a repository's version: the mode of the repository"
    )
    versions: dict[str, str]

    @classmethod
    def read(cls, source: str | Mapping[str, Any], *, origin: str = "metrics.json") -> Self:
        """Read the metrics of a file, which an earlier version may have written.

        Args:
            source: the text of the file, or its JSON value.
            origin: the name of the file in messages.

        Returns:
            The metrics. A count that the file does not have is 0; a key that this version does not know is ignored.

        Raises:
            OutputError: if the text is not JSON, a key that every version wrote is missing, or a value is of another
                type. The message names the first such key.
        """
        try:
            value = json.loads(source) if isinstance(source, str) else source
        except ValueError as error:
            raise OutputError(f"{origin}: expected JSON, got {error}") from error

        try:
            metrics = cls.model_validate(value, strict=True, extra="ignore")
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the file"
            raise OutputError(f"{origin}: {place}: {first['msg']}") from error
        if lacking := sorted(COUNTED - metrics.rows.keys()):
            raise OutputError(f"{origin}: rows.{lacking[0]}: Field required")
        return metrics

    def dump(self) -> dict[str, Any]:
        """Return the JSON value of `metrics.json`, its keys in order."""
        return self.model_dump()

    @property
    def seconds(self) -> float:
        """Seconds of all stages together."""
        return sum(stage.seconds for stage in self.stages.by_name().values())
