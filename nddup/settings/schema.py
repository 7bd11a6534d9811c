"""The sections and keys of the configuration, the effect of each default said where it is defined."""

import re
from fractions import Fraction
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

LANGUAGES = (
    "arabic", "catalan", "czech", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hindi",
    "hungarian", "indonesian", "italian", "norwegian", "persian", "polish", "portuguese", "romanian", "russian",
    "spanish", "swedish", "turkish",
)  # fmt: skip
"""Those of `nddup.sketching.words.stemming`, which loads the libraries."""

SIZES = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def parse_size(value: int | str) -> int:
    """Bytes from `1048576`, `64MB` or `1 gb` (powers of 1024).

    Raises:
        ValueError: if it is neither, or less than 1.

    Example:
        >>> parse_size("64MB")
        67108864
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+)\s*([kmg]b)?\s*", value.lower())
        if not match:
            raise ValueError(f"expected bytes such as 64MB, got {value!r}")
        value = int(match[1]) * SIZES[match[2] or ""]
    if value < 1:
        raise ValueError(f"must be at least 1 byte, got {value}")
    return value


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class InputConfig(_Section):
    """What the records are and where their fields lie. Unset: detected from the head of each file."""

    format: (
        Literal[
            "romip", "xml", "trec", "mediawiki", "stackexchange", "rss", "atom", "oai", "solr", "sphinx", "jsonl",
            "warc", "html", "csv", "parquet",
        ]
        | None
    ) = Field(None, description="how records are laid out")  # fmt: skip
    record: str | None = Field(None, description="local name of the record element")
    id: str | None = Field(
        None,
        description="path of the id, by local name (a/b), attribute (@id) or JSON key (a.b); a|b: the first filled",
    )
    url: str | None = Field(None, description="path of the address")
    content: str | None = Field(
        None,
        description="path of the text; several, joined, with + between; html(a), text(a), base64(a): what it holds",
    )
    charset: str | None = Field(None, description="encoding of the content, before any declaration")
    markup: Literal["auto", "html", "text"] = Field(
        "auto", description="remove markup: always, never, or where a document looks like HTML"
    )
    text: Literal["all", "main"] = Field("all", description="of a page all text, or the main text without boilerplate")
    min_tokens: int = Field(0, ge=0, description="shorter documents are rejects `short`")
    max_rejects: float | None = Field(None, ge=0, le=1, description="share of rejects above which the run fails")
    max_record: int | str = Field(64 << 20, description="bytes, or 64MB; a longer record is a reject `too large`")
    max_expansion: int = Field(
        200, ge=1, description="a compressed file may expand to so many times its size, or 1 GB; the rest is a reject"
    )

    @field_validator("max_record")
    @classmethod
    def _bytes(cls, value: int | str) -> int:
        return parse_size(value)


class ShingleConfig(_Section):
    """What a feature is. Longer shingles find fewer accidental likenesses and lose more around every edit."""

    length: int = Field(5, ge=1, le=1000, description="tokens per shingle; one edit changes this many shingles")
    offset: int = Field(1, ge=1, le=1000, description="tokens between the starts of two shingles")
    unit: Literal["word", "char"] = Field("word", description="what a token is: a word, or a character of the text")


class SketchConfig(_Section):
    """How a document is reduced. The standard error of a resemblance r is at most sqrt(r(1-r)/size): 0.028 at 0.8.

    What is not given follows the kind; what the kind does not take is refused (`nddup.settings.derive`).
    """

    kind: Literal["min-s", "super", "min-perm", "minhash", "mod-m", "mod-pow2", "lexicon", "i-match", "keywords"] = (
        Field("min-s", description="what is kept of a document: see `nddup.sketching.kinds`")
    )
    size: int = Field(200, ge=1, le=100_000, description="ids kept of a document, or slots of its signature")
    seed: int = Field(1, ge=0, lt=1 << 63, description="picks permutations and polynomials")
    fingerprint: Literal["rolling", "rabin"] = Field("rolling", description="how a shingle becomes a number")
    bits: int | None = Field(None, ge=16, le=63, description="of Rabin's fingerprint; 40 where not given")
    permutation: Literal["mix", "gf2", "affine", "datasketch"] | None = Field(
        None, description="of the numbers; mix where not given, datasketch for minhash"
    )
    modulus: int | None = Field(None, ge=1, le=10**9, description="mod-m, growth linear: one id in so many; 25")
    growth: Literal["fixed", "logarithmic", "linear"] = Field(
        "fixed", description="min-s: how the number of ids follows the document's length; not fixed: overlap only"
    )
    tagged: bool = Field(default=True, description="min-perm: ids tell slots apart; false: a plain set, biased")
    bands: int | None = Field(None, ge=1, description="minhash: bands x rows = size; chosen for the threshold")
    rows: int | None = Field(None, ge=1, description="minhash: slots of a band; super: ids of a super-shingle, 8")
    verify: bool = Field(default=True, description="minhash: candidates are compared; false: every candidate is a pair")


class LexiconConfig(_Section):
    """What a word stands for, in the kinds `lexicon`, `i-match` and `keywords`; which words describe a document."""

    languages: list[str] = Field(
        ["english", "russian"], description="of stop words and stems; a word is stemmed by the first of its script"
    )
    stems: bool = Field(default=True, description="words of one stem are one")
    stop_words: bool = Field(default=True, description="articles, prepositions, pronouns and the like are left out")
    low: float = Field(0.00001, ge=0, le=1, description="least frequency, as a share of the commonest word's")
    high: float = Field(0.5, gt=0, le=1, description="most, likewise: commoner words tell nothing")
    saved: str | None = Field(None, description="a run whose lexicon is taken: the same words, the same sketches")
    copies: int = Field(10, ge=0, le=1000, description="i-match: randomised lexicons beside the whole one")
    left_out: float = Field(0.3, gt=0, lt=1, description="i-match: share of the words each of them leaves out")
    letters: int = Field(3, ge=1, le=9, description="keywords: letters whose positions make the number")

    @field_validator("languages")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        for language in value:
            if language not in LANGUAGES:
                raise ValueError(f"unknown language {language!r}; there are {', '.join(LANGUAGES)}")
        return value


class PairsConfig(_Section):
    """When two documents are near-duplicates."""

    measure: Literal["resemblance", "overlap", "containment"] = Field(
        "resemblance", description="what the threshold is about"
    )
    threshold: int | float = Field(0.8, description="85 is a count of features, 0.85 a share; exact decimals")
    max_document_frequency: int | float | None = Field(
        None, description="shingles in the sketches of more documents (or of more than this share) are left out"
    )
    max_postings: int = Field(10_000, ge=2, description="sketches of one prefix feature; where more, the family is led")
    expand_limit: int = Field(1_000_000, ge=1, description="rows from one product of groups; past it, stars")

    @field_validator("threshold")
    @classmethod
    def _fits_measure(cls, value: float, info: ValidationInfo) -> float:
        if isinstance(value, int):
            if info.data.get("measure") != "overlap":
                raise ValueError(f"an integer ({value}) is a count, which needs measure overlap; for a share write 1.0")
            if value < 1:
                raise ValueError(f"a count must be at least 1, got {value}")
        elif not 0 < value <= 1:
            raise ValueError(f"a share must lie in (0, 1], got {value!r}; a count is written without a point")
        elif Fraction(repr(value)).denominator > 10**9:
            raise ValueError(f"a share has at most nine decimals, got {value!r}")
        return value

    @field_validator("max_document_frequency")
    @classmethod
    def _is_frequency(cls, value: float | None) -> float | None:
        if isinstance(value, int) and value < 1:
            raise ValueError(f"a count must be at least 1, got {value}")
        if isinstance(value, float) and not 0 < value <= 1:
            raise ValueError(f"a share must lie in (0, 1], got {value!r}; a count is written without a point")
        return value

    @property
    def share(self) -> Fraction:
        """The threshold as the exact decimal that was written; for a count, the count."""
        return Fraction(repr(self.threshold))


class ClustersConfig(_Section):
    """How clusters are mined. Past its budget a component is covered: every pair in a maximal set, not all sets."""

    mode: Literal["all", "cover", "partition", "components"] = Field(
        "all",
        description="all maximal sets; few that hold every pair; a star of each kept document; connected components",
    )
    miner: Literal["auto", "fpgrowth", "pivot"] = Field("auto", description="auto: fpgrowth for small components")
    fpgrowth_limit: int = Field(8, ge=2, le=20, description="distinct sketches; FP-Growth lists 2^m - 1 sets")
    max_sets: int = Field(1_000, ge=1, description="sets of a component, plus 4 per distinct sketch in it")
    max_members: int = Field(100_000, ge=1, description="member rows of a component, plus 400 per distinct sketch")
    max_nodes: int = Field(2_000_000, ge=1, description="work on a component, plus 100 per distinct sketch: seconds")
    support: int | None = Field(
        None,
        ge=1,
        description="features that all members must share at least; pairs with fewer: counted",
    )

    @model_validator(mode="after")
    def _support_fits_mode(self) -> Self:
        if self.support is not None and self.mode in ("partition", "components"):
            raise ValueError(f"support needs mode all or cover: sets of mode {self.mode} are not mined")
        return self


class KeepConfig(_Section):
    """Which document of a family stays."""

    policy: Literal["longest", "first-id", "first", "shortest-url"] = Field("longest", description="who comes first")


class OutputConfig(_Section):
    """What is written beside the tables."""

    kept: Literal["none", "jsonl", "parquet", "xml"] = Field("none", description="the kept documents themselves")
    context: bool = Field(default=False, description="context.fimi: one feature a line, the doc_keys that hold it")
    report: bool = Field(default=True, description="report/index.html, the run as a page")
    texts: int = Field(2_000, ge=0, description="documents whose text is stored for the report, 20,000 characters each")
    texts_read: int | str = Field(
        4 << 30, description="files that are read again for these texts, stored bytes together"
    )

    @field_validator("texts_read")
    @classmethod
    def _bytes(cls, value: int | str) -> int:
        return parse_size(value)


class Config(_Section):
    """Everything a job can be told."""

    input: InputConfig = InputConfig()
    shingle: ShingleConfig = ShingleConfig()
    sketch: SketchConfig = SketchConfig()
    lexicon: LexiconConfig = LexiconConfig()
    pairs: PairsConfig = PairsConfig()
    clusters: ClustersConfig = ClustersConfig()
    keep: KeepConfig = KeepConfig()
    output: OutputConfig = OutputConfig()
    spark: dict[str, str] = Field(default_factory=dict, description="passed to the Spark session unchanged")

    @field_validator("spark")
    @classmethod
    def _full_names(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if not key.startswith("spark."):
                raise ValueError(f"expected Spark's own full keys, such as spark.{key}, got {key}")
        return value
