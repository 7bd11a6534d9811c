"""Loading of settings: defaults, shipped configurations, exact thresholds, files and assignments."""

from fractions import Fraction
from pathlib import Path

import pytest

from nddup.errors import ConfigError
from nddup.ground.shown import parse_size
from nddup.settings import profiles
from nddup.settings.load import load_config
from nddup.settings.schema import Config
from tests.places import ROOT
from tests.settings.written_settings import written

FILES = profiles() | {name: ROOT / "conf" / f"{name}.yaml" for name in ("cluster", "large")}


def test_defaults_are_those_of_the_documentation() -> None:
    """Without a file or assignments, every key has its documented default."""
    assert load_config().model_dump() == {
        "input": {
            "format": None,
            "record": None,
            "id": None,
            "id_prefix": "none",
            "url": None,
            "content": None,
            "charset": None,
            "quote": "auto",
            "escape": "auto",
            "markup": "auto",
            "text": "all",
            "statuses": [200],
            "min_tokens": 0,
            "max_rejects": 0.5,
            "max_unreadable": 0,
            "limit": None,
            "max_record": 64 << 20,
            "max_expansion": 200,
        },
        "shingle": {"length": 5, "offset": 1, "unit": "word"},
        "sketch": {
            "kind": "min-s",
            "size": 200,
            "seed": 1,
            "fingerprint": "rolling",
            "bits": None,
            "permutation": None,
            "modulus": None,
            "growth": "fixed",
            "tagged": True,
            "bands": None,
            "rows": None,
            "verify": True,
        },
        "lexicon": {
            "languages": ["english", "russian"],
            "stems": True,
            "stop_words": True,
            "low": 1e-5,
            "high": 0.5,
            "saved": None,
            "copies": 10,
            "left_out": 0.3,
            "letters": 3,
        },
        "pairs": {
            "measure": "resemblance",
            "threshold": 0.7,
            "confirm": "resemblance",
            "edit_threshold": 0.77,
            "max_document_frequency": None,
            "max_postings": 10_000,
            "max_edges": 10_000_000,
            "max_comparisons": 5_000_000_000,
            "expand_limit": 1_000_000,
        },
        "clusters": {
            "mode": "all",
            "miner": "auto",
            "fpgrowth_limit": 8,
            "max_sets": 1_000,
            "max_members": 100_000,
            "max_listed": 10_000,
            "max_nodes": 2_000_000,
            "support": None,
        },
        "keep": {
            "policy": "longest",
            "prefer": None,
            "same": None,
            "ledger": None,
            "max_lost": None,
            "force": None,
            "all_known": False,
        },
        "engine": "auto",
        "local": {"memory": None, "processes": None},
        "against": {"max_document_frequency": 1_000, "min_shingles": 5},
        "passages": {"min_tokens": 50, "within": False, "replace": "", "whole_sentences": False, "min_left": 1},
        "output": {
            "kept": "none",
            "tagged": "none",
            "weights": None,
            "columns": None,
            "context": False,
            "onto": False,
            "report": True,
            "names_from": None,
            "texts": 2_000,
            "texts_read": 4 << 30,
        },
        "spark": {},
        "tokens": {"ignore": []},
    }


def test_every_key_says_what_it_does() -> None:
    """Each setting has a description, from which the documentation is generated."""
    for section in Config.model_fields.values():
        for field in getattr(section.annotation, "model_fields", {"": section}).values():
            assert field.description


@pytest.mark.parametrize("name", FILES)
def test_configurations_that_are_shipped_can_be_loaded(name: str) -> None:
    """Every profile, and every file of conf/, can be loaded and differs from the defaults."""
    assert load_config(str(FILES[name])) != Config()
    assert name not in profiles() or load_config(name) == load_config(str(FILES[name]))


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("broder1997", {"length": 10, "kind": "mod-m", "modulus": 25, "fingerprint": "rabin", "bits": 40}),
        ("romip2005-min-perm", {"length": 20, "kind": "min-perm", "size": 100, "permutation": "gf2", "tagged": False}),
        ("kshingle2017", {"kind": "minhash", "permutation": "affine", "bands": 20, "rows": 5, "size": 100}),
    ],
)
def test_profiles_hold_the_published_settings(name: str, published: dict[str, object]) -> None:
    """The shingle and sketch settings of a profile are those of its paper."""
    config = load_config(name)

    held = {**config.shingle.model_dump(), **config.sketch.model_dump()}
    assert {key: held[key] for key in published} == published


def test_romip_configuration_holds_the_published_settings() -> None:
    """The ROMIP configuration has shingles of 20 words, sketches of 100 and a threshold of 85 common features."""
    config = load_config("romip2005")

    assert (config.shingle.length, config.sketch.size) == (20, 100)
    assert (config.pairs.measure, config.pairs.threshold) == ("overlap", 85)


@pytest.mark.parametrize("name", ["cluster", "large"])
def test_cluster_configurations_reserve_memory_for_python(name: str) -> None:
    """The Python workers of an executor get at least 1 GB each."""
    config = load_config(str(FILES[name]))

    memory = parse_size(config.spark["spark.executor.pyspark.memory"] + "b")
    assert memory // int(config.spark["spark.executor.cores"]) >= 1 << 30


@pytest.mark.parametrize("text", ["0.55", "1.0", "0.8", "0.1", "0.000000001", "0.123456789"])
def test_a_share_is_the_decimal_that_was_written(text: str) -> None:
    """A share is the exact decimal as written: 0.55 is 11/20, not the nearest float."""
    config = load_config(None, [f"pairs.threshold={text}"])

    assert config.pairs.share == Fraction(text)


def test_an_integer_is_a_count_and_a_point_makes_a_share() -> None:
    """With `overlap`, an integer is a count and a decimal a share: 1 is one feature, 1.0 is all of them."""
    count = load_config(None, ["pairs.measure=overlap", "pairs.threshold=1"]).pairs
    share = load_config(None, ["pairs.measure=overlap", "pairs.threshold=1.0"]).pairs

    assert isinstance(count.threshold, int)
    assert isinstance(share.threshold, float)


@pytest.mark.parametrize(
    ("text", "size"), [("1048576", 1 << 20), ("64MB", 64 << 20), ("1 gb", 1 << 30), ("10Kb", 10 << 10), ("'7'", 7)]
)
def test_sizes_are_bytes_or_have_a_unit(text: str, size: int) -> None:
    """A size is a number of bytes, or has the unit KB, MB or GB, in powers of 1024."""
    assert load_config(None, [f"input.max_record={text}"]).input.max_record == size


def test_spark_keys_mean_the_same_in_a_file_and_on_the_command_line(tmp_path: Path) -> None:
    """`spark: {spark.sql.x: 8}` and `--set spark.sql.x=8` pass the same text to Spark."""
    by_file = load_config(written(tmp_path, "spark:\n  spark.sql.x: 8\n  spark.y: true\n"))
    by_line = load_config(None, ["spark.sql.x=8", "spark.y=true"])

    assert by_file == by_line
    assert by_file.spark == {"spark.sql.x": "8", "spark.y": "true"}


def test_spark_values_on_the_command_line_may_hold_anything() -> None:
    """The value of a Spark key is everything after the first `=`, unchanged."""
    assert load_config(None, ["spark.x=-Da=b: [c"]).spark == {"spark.x": "-Da=b: [c"}


@pytest.mark.parametrize("path", ["@id", "a/b", "field[@name=id]", "%x", "title+body"])
def test_paths_need_no_quotes_on_the_command_line(path: str) -> None:
    """A path that YAML cannot read, such as an attribute, is taken literally."""
    assert load_config(None, [f"input.id={path}"]).input.id == path


def test_an_assignment_wins_over_the_file_and_the_last_one_over_all(tmp_path: Path) -> None:
    """The file overrides the defaults, `--set` overrides the file, and the last `--set` of a key wins."""
    path = written(tmp_path, "sketch: {size: 50, seed: 3}\n")

    config = load_config(path, ["sketch.size=60", "sketch.size=70"])

    assert (config.sketch.size, config.sketch.seed, config.shingle.length) == (70, 3, 5)


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    """An empty file, or a section whose lines are all commented out, leaves the defaults."""
    assert load_config(written(tmp_path, "# nothing\n")) == Config()
    assert load_config(written(tmp_path, "spark:\n  # spark.x: 1\nsketch:\n")) == Config()


@pytest.mark.parametrize("number", ["0100", "1:40", "-010", "0_7"])
def test_a_number_to_another_base_is_refused(tmp_path: Path, number: str) -> None:
    """YAML reads 0100 as 64 and 1:40 as 100, without a word; in --set such a value is a text."""
    path = tmp_path / "odd.yaml"
    path.write_text(f"pairs:\n  threshold: 0.8\nspark:\n  spark.umask: {number}\n")
    with pytest.raises(
        ConfigError, match=r"odd.yaml: line 4: a number that begins with 0 or holds : is read to another"
    ):
        load_config(str(path))
    path.write_text(f"spark:\n  spark.umask: '{number}'\nsketch:\n  size: 0x40\npairs:\n  threshold: 00.8\n")
    config = load_config(str(path))
    assert (config.spark["spark.umask"], config.sketch.size, config.pairs.threshold) == (number, 64, 0.8)

    with pytest.raises(ConfigError, match=f"sketch.size: Input should be a valid integer, got '{number}'"):
        load_config(None, [f"sketch.size={number}"])
