"""Settings as a Python program passes them: typed dictionaries, so that an editor completes and checks their keys.

Each dictionary has the keys of one section of `nddup.settings.schema`; a test compares the two.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from nddup.errors import ConfigError
from nddup.settings.schema import Config


class InputSettings(TypedDict, total=False):
    """How records and their fields are found. Keys that are not set are detected from the head of each file."""

    format: (
        Literal[
            "romip",
            "xml",
            "trec",
            "mediawiki",
            "stackexchange",
            "rss",
            "atom",
            "oai",
            "solr",
            "sphinx",
            "jsonl",
            "warc",
            "html",
            "csv",
            "parquet",
            "text",
        ]
        | None
    )
    record: str | None
    id: str | None
    url: str | None
    content: str | None
    charset: str | None
    quote: str
    escape: str
    markup: Literal["auto", "html", "text"]
    text: Literal["all", "main"]
    min_tokens: int
    max_rejects: float | None
    max_unreadable: int
    limit: int | None
    max_record: int | str
    max_expansion: int


class ShingleSettings(TypedDict, total=False):
    """What a feature is. Longer shingles match less often by chance, but each edit changes more of them."""

    length: int
    offset: int
    unit: Literal["word", "char"]


class SketchSettings(TypedDict, total=False):
    """How documents are sketched. The standard error of a resemblance r is at most sqrt(r(1-r)/size): 0.028 at 0.8."""

    kind: Literal[
        "min-s", "super", "min-perm", "minhash", "mod-m", "mod-pow2", "whole", "lexicon", "i-match", "keywords"
    ]
    size: int
    seed: int
    fingerprint: Literal["rolling", "rabin"]
    bits: int | None
    permutation: Literal["mix", "gf2", "affine", "datasketch"] | None
    modulus: int | None
    growth: Literal["fixed", "logarithmic", "linear"]
    tagged: bool
    bands: int | None
    rows: int | None
    verify: bool


class LexiconSettings(TypedDict, total=False):
    """The kinds `lexicon`, `i-match` and `keywords`: how words are normalised, and which words describe a document."""

    languages: list[str]
    stems: bool
    stop_words: bool
    low: float
    high: float
    saved: str | None
    copies: int
    left_out: float
    letters: int


class PairsSettings(TypedDict, total=False):
    """When two documents are near-duplicates."""

    measure: Literal["resemblance", "overlap", "containment"]
    threshold: int | float
    confirm: Literal["none", "edit"]
    edit_threshold: float
    max_document_frequency: int | float | None
    max_postings: int
    max_edges: int
    max_comparisons: int
    expand_limit: int


class ClustersSettings(TypedDict, total=False):
    """How clusters are mined. If a component is too costly to mine, only enough sets to hold every pair are listed."""

    mode: Literal["all", "cover", "partition", "components", "none"]
    miner: Literal["auto", "fpgrowth", "pivot"]
    fpgrowth_limit: int
    max_sets: int
    max_members: int
    max_nodes: int
    max_listed: int
    support: int | None


class KeepSettings(TypedDict, total=False):
    """Which of several near-duplicates is kept."""

    policy: Literal["longest", "first-id", "first", "shortest-url"] | list[str]
    prefer: list[str] | None


class LocalSettings(TypedDict, total=False):
    """The embedded engine: one machine, no JVM."""

    memory: int | str | None
    processes: int | None


def _keys_of(section: Any) -> list[str]:  # noqa: ANN401 - a class of settings, or a plain type
    return list(getattr(section, "model_fields", {}))


def nest_settings(settings: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """Turn dotted keys into sections: `{"pairs.threshold": 0.9}` becomes `{"pairs": {"threshold": 0.9}}`.

    Args:
        settings: sections and dotted keys.
        origin: the function that was called, for messages.

    Raises:
        ConfigError: for a key without its section, and for the section `output`.
    """
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        if not name and not isinstance(value, Mapping):
            sections = [known for known, one in Config.model_fields.items() if section in _keys_of(one.annotation)]
            hint = (
                f"; {section} is a setting of {sections[0]}: {sections[0]}={{{section!r}: {value!r}}}"
                if sections
                else ""
            )
            raise ConfigError(f"{origin}: {section}: expected a section such as pairs={{...}}, got {value!r}{hint}")
        if section == "output":
            raise ConfigError(f"{origin}: output: it writes no folder, the tables are returned; `nddup run` writes one")
        given = ({key: value} if section == "spark" else {name: value}) if name else value
        nested[section] = {**nested.get(section, {}), **given}
    return nested
