"""The sections and keys of the configuration, with the effect of each default. A wrong value is refused here."""

import reprlib
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from nddup.ground.shown import MOST_BYTES, parse_size
from nddup.matching.measures import MEASURES
from nddup.matching.preference import Order, read_columns, read_glob, read_order
from nddup.mining.modes import MODES
from nddup.reading.formats import FORMATS
from nddup.settings.kept_columns import Schedule, require_table
from nddup.settings.sections import AgainstConfig, FilePath, PassagesConfig, Section, ShingleConfig, TokensConfig
from nddup.sketching.kinds import KINDS

if TYPE_CHECKING:
    Format: TypeAlias = str
    Kind: TypeAlias = str
    Measure: TypeAlias = str
    Mode: TypeAlias = str
else:  # the choices, read from where each is declared
    Format, Kind, Measure, Mode = (Literal[tuple(declared)] for declared in (FORMATS, KINDS, MEASURES, MODES))

COUNTABLE = [measure.name for measure in MEASURES.values() if measure.takes_count]

MOST_IDS = 1 << 31
"""No sketch has so many ids: `overlap` and `support` are numbers of 32 bits."""

SOURCE_COLUMN = "nddup_source"
"""The column of `keep.same` that is the file of a record, not a field in it."""

WORDS = ("longest", "first-id", "first", "shortest-url", "newest", "oldest")


class KeepConfig(Section):
    """Which of several near-duplicates is kept."""

    policy: Literal["longest", "first-id", "first", "shortest-url", "newest", "oldest"] | list[str] = Field(
        "longest",
        description="which document is preferred: one of these orders (`newest` and `oldest` by the date of captures"
        " in WARC and ARC), or columns to sort by, `-` for descending, `:number` or `:text` for the type:"
        " `[-score:number, date, -length]`; `'source=wiki,news'` puts these values first, in this"
        " order. Of equals the older capture comes first, then the smaller id",
    )
    prefer: list[str] | None = Field(
        None, description="globs of `source`: documents of an earlier glob are preferred to those of a later one"
    )
    same: list[str] | None = Field(
        None,
        description="columns of the records, such as `[license, lang]`: a document is removed only for one with equal"
        " values in all of them; a missing value equals a missing one. `nddup_source` is the file",
    )
    ledger: list[str] | None = Field(
        None,
        description="columns of the records whose values the table `families` counts for each kept document and those"
        " removed for it: `[source, date]`; `nddup_source` is the file",
    )
    max_lost: float | None = Field(
        None,
        ge=0,
        le=1,
        description="most share of its distinct shingles that a removed document may lose: one of which every kept"
        " near-duplicate before it lacks more is kept. 0: nothing is lost. Needs pairs.confirm resemblance",
    )
    force: FilePath = Field(
        None, description="a file of lines `doc_id, kept` or `doc_id, removed`, which come before the policy"
    )
    all_known: bool = Field(
        default=False, description="an id of keep.force that is no document stops the run (`--all-known`)"
    )

    @field_validator("max_lost")
    @classmethod
    def _is_decimal(cls, value: float | None) -> float | None:
        return value if value is None else _with_few_decimals(value)

    @field_validator("policy", mode="before")
    @classmethod
    def _is_word_or_columns(cls, value: object) -> object:
        """Refuse other values with one message instead of one for each form."""
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

    @field_validator("same", "ledger")
    @classmethod
    def _are_columns(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not (value and all(name.strip() for name in value) and len(set(value)) == len(value)):
            raise ValueError(f"expected different columns such as [license, lang], got {reprlib.repr(value)}")
        return value

    @field_validator("prefer")
    @classmethod
    def _are_globs(cls, value: list[str] | None) -> list[str] | None:
        for glob in value or ():
            read_glob(glob)
        return value

    @property
    def most_lost(self) -> Fraction | None:
        """`max_lost` as the exact decimal that was written."""
        return None if self.max_lost is None else Fraction(repr(self.max_lost))

    @property
    def order(self) -> Order:
        """The order in which documents are preferred."""
        return read_order(self.policy, self.prefer)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns whose values are read from the records, in the order of `documents.policy`."""
        return tuple(dict.fromkeys([*self.deciding, *(name for name in self.ledger or () if name != SOURCE_COLUMN)]))

    @property
    def deciding(self) -> tuple[str, ...]:
        """The first of these: the columns whose values decide verdicts."""
        ordering = [column.path for column in self.order.read]
        return tuple(dict.fromkeys([*ordering, *(name for name in self.same or () if name != SOURCE_COLUMN)]))

    @property
    def same_places(self) -> tuple[int | None, ...]:
        """For each column of `same`, its place in `read`; None for the file."""
        return self._places(self.same)

    @property
    def ledger_places(self) -> tuple[int | None, ...]:
        """Likewise for each column of `ledger`."""
        return self._places(self.ledger)

    def _places(self, names: list[str] | None) -> tuple[int | None, ...]:
        return tuple(None if name == SOURCE_COLUMN else self.read.index(name) for name in names or ())


class OutputConfig(Section):
    """What is written besides the tables."""

    kept: Literal["none", "as-input", "jsonl", "parquet", "delta", "xml"] = Field(
        "none",
        description="write the kept documents themselves: unchanged, in files of the same names (`as-input`), or in the"
        " format named; delta needs its extra, and no Spark",
    )
    tagged: Literal["none", "as-input"] = Field(
        "none", description="write the inputs again, with the result added to every document"
    )
    weights: dict[int, int] | Schedule | None = Field(
        None,
        description="write `nddup_weight` with kept documents, `kept` and `tagged`: times to train on each, by its"
        " copies: a table such as `{1: 1, 2: 2, 100: 1}`, fineweb2 (1, 2, 3, from 5 on 5, from 100 on 8, from"
        " 1,000 on 1), or log2 (1 + log2 of the copies, rounded down)",
    )
    columns: list[str] | None = Field(
        None,
        description="columns beside kept documents, `kept` and `tagged`: `copies`, and with keep.ledger `equal`,"
        " `lost_most`, `resemblance_least`, and its columns, each with its counted values, or `:distinct`, `:least`,"
        " `:greatest`: `[equal, source, first=date:least]` gives `nddup_equal`, `nddup_source`, `nddup_first`",
    )
    context: bool = Field(
        default=False, description="write context.fimi: a line for each feature, the doc_keys of its documents"
    )
    report: bool = Field(
        default=True, description="write report/index.html, a page that shows the run; without it no text is stored"
    )
    names_from: FilePath = Field(
        None,
        description="folder of an earlier run, or REPO@N, a version of a repository: families that share most documents"
        " with one of it have its name in the table `names`, and the report begins with what is new (`--names-from`)",
    )
    onto: bool = Field(
        default=False,
        description="keep what a later run onto this one needs (`--onto`), so that it reads only what is new: some 100"
        " bytes a document, and 8 for each shingle of a long one, which is read a second time",
    )
    texts: int = Field(
        2_000,
        ge=0,
        description="most documents whose texts are stored for the report, 20,000 characters each; none without it",
    )
    texts_read: int | str = Field(
        4 << 30, description="most stored bytes of the input files that are read again for these texts"
    )

    @field_validator("texts_read")
    @classmethod
    def _bytes(cls, value: int | str) -> int:
        return parse_size(value)

    @field_validator("weights", mode="before")
    @classmethod
    def _as_stored(cls, value: object) -> object:
        """Refuse other values with one message; JSON, in which a run stores its settings, has only strings as keys."""
        if value is None or value in get_args(Schedule):
            return value
        if isinstance(value, dict):
            table = {int(key) if str(key).isdecimal() else key: times for key, times in value.items()}
            if all(type(number) is int for number in (*table, *table.values())):
                return table
        raise ValueError(
            f"expected {', '.join(get_args(Schedule))}, or numbers of copies and how many times from there on, such as"
            f" {{1: 1, 2: 2, 100: 1}}; got {reprlib.repr(value)}"
        )

    @field_validator("weights")
    @classmethod
    def _is_table(cls, value: dict[int, int] | str | None) -> dict[int, int] | str | None:
        if isinstance(value, dict):
            require_table(value)
        return value


class LocalConfig(Section):
    """The embedded engine: one machine, no JVM."""

    memory: int | str | None = Field(
        None, description="memory that a run may use, by default three quarters of the machine's; more is left to Spark"
    )
    processes: int | None = Field(
        None, ge=1, le=1024, description="worker processes and threads; by default the available cores"
    )

    @field_validator("memory")
    @classmethod
    def _bytes(cls, value: int | str | None) -> int | None:
        return None if value is None else parse_size(value)


LANGUAGES = (
    "arabic", "catalan", "czech", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hindi",
    "hungarian", "indonesian", "italian", "norwegian", "persian", "polish", "portuguese", "romanian", "russian",
    "spanish", "swedish", "turkish",
)  # fmt: skip
"""The languages of `nddup.sketching.vocabulary`, repeated here: that module loads the stemming
libraries."""


class InputConfig(Section):
    """How records and their fields are found. Keys that are not set are detected from the head of each file."""

    format: Format | None = Field(None, description="format of the files")
    record: str | None = Field(None, description="local name of the record element")
    id: str | None = Field(
        None,
        description="path of the id: local names (a/b), an attribute (@id) or JSON keys (a.b); a|b: the first that is"
        " not empty",
    )
    id_prefix: Literal["none", "source"] = Field(
        "none", description="`source` makes ids that restart in each file unique, `part-1.jsonl/17`"
    )
    url: str | None = Field(None, description="path of the address (URL)")
    content: str | None = Field(
        None, description="path of the text; a+b joins fields; html(a), text(a), base64(a) give the form of a field"
    )
    charset: str | None = Field(None, description="encoding of the content; overrides every declaration")
    quote: str = Field(
        "auto",
        description="character around values of a table (CSV): auto, as its first rows show; none, quotes are text",
    )
    escape: str = Field(
        "auto",
        description="character before a quote inside a quoted value: auto, as the first rows show; double, two quotes",
    )
    markup: Literal["auto", "html", "text"] = Field(
        "auto",
        description="remove markup always (html), never (text), or tag by tag, in pages as a browser does (auto)",
    )
    text: Literal["all", "main"] = Field(
        "all", description="use all text of a page, or only its main text without boilerplate"
    )
    statuses: list[int] | Literal["all"] = Field(
        [200],
        description="HTTP statuses of the captures in WARC and ARC that are documents; others, error pages and"
        " redirects, are counted as `status`",
    )
    min_tokens: int = Field(0, ge=0, description="least tokens of a document; a shorter one is a reject `short`")
    max_rejects: float | None = Field(
        0.5,
        ge=0,
        le=1,
        description="the run fails if a larger share of records is rejected, or of bytes lies in files that gave no"
        " document; 1 allows any",
    )
    max_unreadable: int = Field(0, ge=0, description="the run fails if more files cannot be opened; each is named")
    limit: int | None = Field(
        None, ge=1, description="read only this many records, the first of the collection: for a first try"
    )
    max_record: int | str = Field(
        64 << 20, description="most bytes of a record, such as 64MB; a longer one is a reject `too large`"
    )
    max_expansion: int = Field(
        200,
        ge=1,
        description="most times its size, at least 4 kB on a disk, that a compressed file may expand to, or its even"
        " share of 64 MB; a line, a row or an element counts for 128 bytes more; the rest is a reject",
    )

    @field_validator("statuses", mode="before")
    @classmethod
    def _statuses(cls, value: object) -> object:
        """Refuse other values with one message instead of one for each form."""
        codes = [value] if isinstance(value, int) else value
        is_code = isinstance(codes, list) and all(isinstance(one, int) and 100 <= one < 600 for one in codes)  # noqa: PLR2004
        if codes == "all" or (is_code and codes):
            return codes
        raise ValueError(
            f"expected all, or HTTP statuses from 100 to 599 such as [200, 404], got {reprlib.repr(value)}"
        )

    @field_validator("quote", "escape")
    @classmethod
    def _sign(cls, value: str, info: ValidationInfo) -> str:
        word = "none" if info.field_name == "quote" else "double"
        if value not in ("auto", word) and (len(value) != 1 or value.isalnum() or value.isspace()):
            raise ValueError(f"must be auto, {word} or one character, got {value!r}")
        return value

    @field_validator("max_record")
    @classmethod
    def _bytes(cls, value: int | str) -> int:
        size = parse_size(value)
        if size > MOST_BYTES:
            raise ValueError(f"must be less than 2GB, which Java holds in one piece, got {value!r}")
        return size


class SketchConfig(Section):
    """How documents are sketched. The standard error of a resemblance r is at most sqrt(r(1-r)/size): 0.028 at 0.8.

    The default of a key that is not given depends on the kind; a key that the kind does not use is refused.
    """

    kind: Kind = Field(
        "min-s", description="which features a sketch keeps: see docs/kinds.md; whole finds equal texts only"
    )
    size: int = Field(200, ge=1, le=100_000, description="ids in a sketch, or slots in a signature")
    seed: int = Field(1, ge=0, lt=1 << 63, description="seed of the permutations and polynomials")
    fingerprint: Literal["rolling", "rabin"] = Field("rolling", description="how a shingle is hashed")
    bits: int | None = Field(None, ge=16, le=63, description="bits of Rabin's fingerprint; 40 if not given")
    permutation: Literal["mix", "gf2", "affine", "datasketch"] | None = Field(
        None, description="permutation of the hashes; mix if not given, datasketch for minhash"
    )
    modulus: int | None = Field(
        None, ge=1, le=10**9, description="mod-m, or growth linear: keep one id in this many; 25 if not given"
    )
    growth: Literal["fixed", "logarithmic", "linear"] = Field(
        "fixed", description="min-s: how the number of ids grows with the document; only `fixed` allows a resemblance"
    )
    tagged: bool = Field(
        default=True,
        description="min-perm: each id belongs to its slot; false: a plain set, as in the papers, which is biased",
    )
    bands: int | None = Field(
        None, ge=1, description="minhash: number of bands, bands x rows = size; if not given, chosen for the threshold"
    )
    rows: int | None = Field(
        None, ge=1, description="minhash: slots per band; super: ids per super-shingle, 8 if not given"
    )
    verify: bool = Field(
        default=True, description="minhash: compare the candidates; false: every candidate counts as a pair"
    )


class LexiconConfig(Section):
    """The kinds `lexicon`, `i-match` and `keywords`: how words are normalised, and which words describe a document."""

    languages: list[str] = Field(
        ["english", "russian"],
        description="languages of stop words and stems; a word is stemmed by the first language of its script",
    )
    stems: bool = Field(default=True, description="count words with the same stem as one")
    stop_words: bool = Field(default=True, description="leave out articles, prepositions, pronouns and the like")
    low: float = Field(0.00001, ge=0, le=1, description="lowest frequency of a word, relative to the commonest word's")
    high: float = Field(0.5, gt=0, le=1, description="highest frequency, likewise; commoner words tell too little")
    saved: FilePath = Field(None, description="folder of a run whose lexicon is used: its sketches are comparable")
    copies: int = Field(10, ge=0, le=1000, description="i-match: number of randomised lexicons besides the whole one")
    left_out: float = Field(0.3, gt=0, lt=1, description="i-match: share of the words missing in a randomised lexicon")
    letters: int = Field(3, ge=1, le=9, description="keywords: how many first letters of a word make its number")

    @field_validator("languages")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        for language in value:
            if language not in LANGUAGES:
                raise ValueError(f"unknown language {language!r}; there are {', '.join(LANGUAGES)}")
        return value


def _default_threshold(given: dict[str, object]) -> float:
    """Return the threshold where none is given, by the measure."""
    return MEASURES[str(given.get("measure", "resemblance"))].threshold


class PairsConfig(Section):
    """When two documents are near-duplicates."""

    measure: Measure = Field("resemblance", description="what the threshold applies to")
    threshold: int | float = Field(
        default_factory=_default_threshold,
        description="85: a count of common features; 0.85: a share; decimals are exact. Default: 0.7 for resemblance,"
        " 0.8 for overlap and containment",
    )
    confirm: Literal["auto", "none", "edit", "resemblance"] = Field(
        "auto",
        description="`none`: sketches decide; else they only propose, and texts are read again: `resemblance`: all"
        " shingles decide, exactly; `edit`: the token edit similarity decides; `auto`: `resemblance` for min-s sketches"
        " of fixed size and all shingles, where that is the measure, else `none`",
    )
    edit_threshold: float = Field(
        0.77,
        gt=0,
        le=1,
        description="confirm edit: least 2 LCS / (a + b) of both texts' tokens, of which shingle.unit says whether"
        " they are words or characters; exact decimals",
    )
    max_document_frequency: int | float | None = Field(
        None, description="leave out shingles that the sketches of more documents hold; a decimal is a share of them"
    )
    max_postings: int = Field(
        10_000,
        ge=2,
        description="most sketches compared at one prefix feature; above it, their family is searched separately, or"
        " all are compared where there are no leaders, as for containment",
    )
    # All pairs of 4,500 sketches: 25 CPU seconds to find, and at most 2 GB in the memory of the embedded engine.
    max_edges: int = Field(
        10_000_000,
        ge=1,
        description="most pairs of distinct sketches in a component; a component with more is clustered around"
        " leaders, and `pairs` has only their pairs",
    )
    # All pairs of 100,000 sketches: some 2 microseconds each for near-duplicates, a tenth of that for others.
    max_comparisons: int = Field(
        5_000_000_000,
        ge=1,
        description="most comparisons for one family, or for the sketches with one prefix feature; the run fails if"
        " more are needed",
    )
    expand_limit: int = Field(
        1_000_000, ge=1, description="most rows of `pairs` for two groups of equal sketches; above it, a star"
    )

    @field_validator("threshold")
    @classmethod
    def _fits_measure(cls, value: float, info: ValidationInfo) -> float:
        if isinstance(value, int):
            if info.data.get("measure") not in COUNTABLE:
                share = value / 100 if 1 < value <= 100 else 1.0 if value == 1 else 0.8  # noqa: PLR2004 - 80 per cent
                raise ValueError(
                    f"an integer ({value}) is a count, which needs measure {' or '.join(COUNTABLE)};"
                    f" for a share write {share}"
                )
            if value < 1:
                raise ValueError(f"a count must be at least 1, got {value}")
            if value >= MOST_IDS:
                raise ValueError(f"a count must be less than {MOST_IDS}, got {value}")
        elif not 0 < value <= 1:
            raise ValueError(f"a share must lie in (0, 1], got {value!r}; a count is written without a point")
        return value if isinstance(value, int) else _with_few_decimals(value)

    @field_validator("edit_threshold")
    @classmethod
    def _is_decimal(cls, value: float) -> float:
        return _with_few_decimals(value)

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
        """The threshold as the exact decimal that was written, or the count."""
        return Fraction(repr(self.threshold))


class ClustersConfig(Section):
    """How clusters are mined. If a component is too costly to mine, only enough sets to hold every pair are listed."""

    mode: Mode = Field("all", description="; ".join(f"`{mode.name}`: {mode.says}" for mode in MODES.values()))
    miner: Literal["auto", "fpgrowth", "pivot"] = Field(
        "auto",
        description="auto: FP-Growth for small components where one task is too little, in at most four fits; else the"
        " pivot miner",
    )
    fpgrowth_limit: int = Field(
        8, ge=2, le=20, description="most distinct sketches, m, of a component for FP-Growth, which lists 2^m - 1 sets"
    )
    max_sets: int = Field(
        1_000,
        ge=1,
        description="most sets of a component, plus 4 per distinct sketch; above it, only enough to hold every pair",
    )
    max_members: int = Field(
        100_000, ge=1, description="most member rows of a component, plus 400 per distinct sketch; likewise"
    )
    max_nodes: int = Field(
        2_000_000,
        ge=1,
        description="search-node budget per component, plus 100 per distinct sketch: some seconds; likewise",
    )
    # 10,000 ids of 60 bytes are a row of 600 KB; some 35 million would pass Spark's limit, a row of 2 GB.
    max_listed: int = Field(
        10_000, ge=1, description="most ids in a row of `clusters`; the table `members` has all of them"
    )
    support: int | None = Field(
        None,
        ge=1,
        lt=MOST_IDS,
        description="least number of features common to all members; pairs with fewer are only counted",
    )

    @model_validator(mode="after")
    def _support_fits_mode(self) -> Self:
        if self.support is not None and not MODES[self.mode].is_mined:
            raise ValueError(f"support needs mode all or cover: sets of mode {self.mode} are not mined")
        return self


def why_estimated(pairs: Mapping[str, Any], sketch: Mapping[str, Any]) -> str:
    """Return the setting with which sketches alone decide, unless `pairs.confirm` is set; "" if all shingles do.

    Args:
        pairs: the section, of a run or of settings; what an earlier version did not write has its default.

    Example:
        >>> why_estimated({"measure": "overlap"}, {"kind": "min-s"})
        'pairs.measure overlap'
    """
    if pairs.get("measure", "resemblance") != "resemblance":
        return f"pairs.measure {pairs['measure']}"
    for key, value in {"kind": "min-s", "growth": "fixed", "verify": True, "tagged": True}.items():
        if sketch.get(key, value) != value:
            return f"sketch.{key} {sketch[key]}"
    most = pairs.get("max_document_frequency")
    return "" if most is None else f"pairs.max_document_frequency {most}"


def say_estimated(pairs: Mapping[str, Any], sketch: Mapping[str, Any]) -> str:
    """Say that sketches alone decide, and by which setting; "" where a sketch has the whole text."""
    kind = str(sketch["kind"])
    if KINDS[kind].is_of_words or kind == "whole":
        return ""
    return f", by sketches alone: {why_estimated(pairs, sketch) or 'pairs.confirm none'}"


class Config(Section):
    """All settings of a run."""

    engine: Literal["auto", "local", "spark"] = Field(
        "auto",
        description="`local`: this machine, without a JVM; `spark`: any size, on a cluster or here; `auto`: local if"
        " every INPUT is a local file and nothing requires Spark. The tables are the same",
    )
    input: InputConfig = InputConfig()
    tokens: TokensConfig = TokensConfig()
    shingle: ShingleConfig = ShingleConfig()
    sketch: SketchConfig = SketchConfig()
    lexicon: LexiconConfig = LexiconConfig()
    pairs: PairsConfig = PairsConfig()
    clusters: ClustersConfig = ClustersConfig()
    keep: KeepConfig = KeepConfig()
    output: OutputConfig = OutputConfig()
    local: LocalConfig = LocalConfig()
    against: AgainstConfig = AgainstConfig()
    passages: PassagesConfig = PassagesConfig()
    spark: dict[str, str] = Field(default_factory=dict, description="passed to the Spark session unchanged")

    @model_validator(mode="after")
    def _confirm_where_exact(self) -> Self:
        """Replace `pairs.confirm: auto` by what it stands for; the keys that were given are still known."""
        if self.pairs.confirm == "auto":
            why = why_estimated(dict(self.pairs), dict(self.sketch))
            values = {**dict(self.pairs), "confirm": "none" if why else "resemblance"}
            given = self.pairs.model_fields_set - {"confirm"}
            object.__setattr__(self, "pairs", PairsConfig.model_construct(given, **values))
        return self

    @field_validator("spark")
    @classmethod
    def _full_names(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if not key.startswith("spark."):
                raise ValueError(f"expected Spark's own full keys, such as spark.{key}, got {key}")
        return value


def _with_few_decimals(share: float) -> float:
    if Fraction(repr(share)).denominator > 10**9:
        raise ValueError(f"a share has at most nine decimals, got {share!r}")
    return share
