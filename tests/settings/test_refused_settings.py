"""Refused settings: one line names the key, what was expected and what was given."""

from pathlib import Path

import pytest

from nddup.errors import ConfigError
from nddup.settings.load import build_config, load_config
from tests.settings.written_settings import written


def refusal(*assignments: str, path: str | None = None) -> str:
    """Return the message of a refused configuration, after checking that it is one line."""
    with pytest.raises(ConfigError) as caught:
        load_config(path, assignments)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("pairs.treshold=0.9", "--set: pairs.treshold: unknown key; did you mean threshold?"),
        ("pears.threshold=0.9", "--set: pears: unknown key; did you mean pairs?"),
        ("output.zzz=1", "--set: output.zzz: unknown key; expected one of kept"),
        (
            "zzz.zzz=1",
            "--set: zzz: unknown key; expected one of engine, input, tokens, shingle, sketch, lexicon, pairs, clusters",
        ),
        ("pairs", "--set pairs: expected section.key=value"),
        ("pairs=0.9", "--set pairs: expected section.key=value, a section is one of engine, input, tokens, shingle"),
        ("=0.9", "--set : expected section.key=value"),
    ],
)
def test_unknown_keys_are_refused_with_a_hint(assignment: str, said: str) -> None:
    """An unknown name is refused with the nearest known name, or with all known names."""
    assert refusal(assignment).startswith(said)


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("sketch.size=0", "--set: sketch.size: Input should be greater than or equal to 1, got 0"),
        ("sketch.size=2.5", "--set: sketch.size: Input should be a valid integer, got 2.5"),
        ("sketch.size=big", "--set: sketch.size: Input should be a valid integer, got 'big'"),
        ("clusters.support=2147483648", "--set: clusters.support: Input should be less than 2147483648"),
        ("shingle.length=true", "--set: shingle.length: Input should be a valid integer, got True"),
        ("input.max_rejects=2", "--set: input.max_rejects: Input should be less than or equal to 1, got 2"),
        ("input.id=7", "--set: input.id: Input should be a valid string, got 7"),
        ("input.id=[a, b]", "--set: input.id: Input should be a valid string, got ['a', 'b']"),
        ("keep.policy=best", "--set: keep.policy: expected longest, first-id, first, shortest-url, newest, oldest, or"),
        ("keep.policy=7", "--set: keep.policy: expected longest, first-id, first, shortest-url, newest, oldest, or"),
        *(
            (f"output.weights={wrong}", "--set: output.weights: expected fineweb2, log2, or numbers of copies and how")
            for wrong in ("{a: 1}", "{1: x}", "{1: true}", "[1]", "log", "7")
        ),
        ("input.format=docx", "--set: input.format: Input should be 'romip', 'trec', 'mediawiki'"),
    ],
)
def test_wrong_values_are_refused_with_what_was_expected(assignment: str, said: str) -> None:
    """The message names the key, what was expected and what was given."""
    assert refusal(assignment).startswith(said)


def test_all_wrong_keys_are_named_at_once() -> None:
    """One line names all wrong keys."""
    said = refusal("sketch.size=0", "keep.policy=best")

    assert "sketch.size: " in said
    assert "; keep.policy: " in said


@pytest.mark.parametrize(
    ("assignments", "said"),
    [
        (["pairs.threshold=85"], "an integer (85) is a count, which needs measure overlap; for a share write 0.85"),
        (["pairs.measure=overlap", "pairs.threshold=0"], "a count must be at least 1, got 0"),
        (["pairs.measure=overlap", "pairs.threshold=-3"], "a count must be at least 1, got -3"),
        (
            ["pairs.measure=overlap", "pairs.threshold=2147483648"],
            "a count must be less than 2147483648, got 2147483648",
        ),
        (["pairs.threshold=0.0"], "a share must lie in (0, 1], got 0.0; a count is written without a point"),
        (["pairs.threshold=1.5"], "a share must lie in (0, 1], got 1.5; a count is written without a point"),
        (["pairs.threshold=85.0"], "a share must lie in (0, 1], got 85.0; a count is written without a point"),
        (["pairs.threshold=.nan"], "a share must lie in (0, 1], got nan; a count is written without a point"),
        (["pairs.threshold=0.1234567891"], "a share has at most nine decimals, got 0.1234567891"),
        (["pairs.threshold='85'"], "Input should be a valid number, got '85'"),
        (["pairs.threshold=true"], "Input should be a valid number, got True"),
        (["pairs.threshold=null"], "Input should be a valid number, got None"),
    ],
)
def test_thresholds_that_mean_nothing_are_refused(assignments: list[str], said: str) -> None:
    """A threshold is refused unless it is a count with `overlap`, or a share in (0, 1] of at most nine decimals."""
    assert refusal(*assignments) == f"--set: pairs.threshold: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("64 parsecs", "expected bytes such as 64MB or 64m, got '64 parsecs'"),
        ("-1", "must be at least 1 byte, got -1"),
        ("0KB", "must be at least 1 byte, got 0"),
        ("1.5MB", "expected bytes such as 64MB or 64m, got '1.5MB'"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(text: str, said: str) -> None:
    """A size that is not a number of bytes is refused with an example."""
    assert refusal(f"input.max_record={text}") == f"--set: input.max_record: {said}"


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("input.min_tokens=2001-13-45", "valid integer, got '2001-13-45'"),
        ("sketch.size=0b_", "valid integer, got '0b_'"),
        ("pairs.max_postings=" + "9" * 5_000, "valid integer, got '999"),
        ("pairs.max_postings=0x" + "f" * 5_000, "expected a number of fewer than 19 digits"),
        ("clusters.max_sets=9223372036854775808", "expected a number of fewer than 19 digits"),
        ("input.max_record=2GB", "less than 2GB"),
        ("sketch.size=" + "[" * 2_000, "valid integer, got '[[["),
        ("input.id=[&a [x, x], &b [*a, *a], &c [*b, *b], &d [*c, *c], &e [*d, *d], [*e, *e]]", "valid string"),
        ("sketch.size=\x1b[31m\u2028", "\\x1b[31m\\u2028"),
        ("sketch.\x07=1", "sketch.\\x07: unknown key"),
        ("sketch." + "x" * 9_999, "unknown key"),
    ],
    ids=["date", "binary", "digits", "hexadecimal", "64 bits", "Java's", "deep", "aliases", "controls", "key", "long"],
)
def test_whatever_is_typed_is_refused_in_a_line_that_can_be_read(assignment: str, said: str) -> None:
    """A value that breaks YAML's reader is treated as text, and its refusal is printable and short."""
    message = refusal(assignment)

    assert message.isprintable()
    assert len(message) < 1_200
    assert said in message or len(assignment) > 9_999


@pytest.mark.parametrize("text", ["sketch: " + "[" * 2_000, "a: 2001-13-45", "a: 0b_", "a: " + "9" * 5_000])
def test_a_file_that_yaml_fails_at_is_refused(tmp_path: Path, text: str) -> None:
    """A file is refused as `not YAML` even where the reader raises Python's own errors, for dates, numbers or depth."""
    assert "not YAML" in refusal(path=written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spark: {sql.x: 8}", "spark: expected Spark's own full keys, such as spark.sql.x, got sql.x"),
        ("spark: {spark.sql: {x: 8}}", "spark.sql: expected a text or a number, got {'x': 8}"),
        ("spark: {spark.x: null}", "spark.x: expected a text or a number, got None"),
        ("spark: 8", "spark: Input should be a valid dictionary, got 8"),
    ],
)
def test_spark_settings_that_would_have_no_effect_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """A key that is not Spark's, or a value that is neither text nor a number, is refused instead of passed on."""
    path = written(tmp_path, text)

    assert refusal(path=path) == f"{path}: {said}"


def test_a_wrong_file_is_refused_under_its_own_name(tmp_path: Path) -> None:
    """A mistake in a file is reported under the file's name, even if there are assignments too."""
    path = written(tmp_path, "sketch: {sise: 50}\n")

    assert refusal("sketch.size=60", path=path) == f"{path}: sketch.sise: unknown key; did you mean size?"
    for key in ("a.b", "../x", "pairs.treshold"):
        written(tmp_path, f'"{key}": 1\n')
        assert refusal("sketch.size=60", path=path).startswith(f"{path}: {key}: unknown key; expected one of engine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sketch: {size: 50\n", "not YAML: while parsing"),
        ("pairs: {threshold: 0.6, threshold: 0.7}\n", "line 1: the key threshold occurs twice, first in line 1"),
        ("pairs: &a\n  size: 1\n'size': 2\npairs: *a\n", "line 4: the key pairs occurs twice, first in line 1"),
        ("spark: &a\n  x: {y: 1,\n    y: 1}\nlocal: *a\n", "line 3: the key y occurs twice, first in line 2"),
        ("keep:\n  max_lost:\n  force: ~\n", "line 2: the key max_lost has no value; null stands for none"),
        ("- sketch\n", "expected sections such as `sketch:`, got list"),
        ("sketch\n", "expected sections such as `sketch:`, got str"),
        ("sketch: 5\n", "sketch: expected keys with their values, such as kind, got 5"),
        ("threshold: 0.8\n", "threshold: unknown key; it belongs below pairs: as threshold"),
        ("pairs.threshold: 0.8\n", "pairs.threshold: unknown key; it belongs below pairs: as threshold"),
        (
            "pairs:\n\tthreshold: 0.8\n",
            "not YAML: while scanning for the next token, found character '\\t' that cannot",
        ),
        ("sketch: \0\n", "not YAML: it holds U+0000"),
        ("a: *secret\n", "not YAML: found undefined alias a value"),
        ('keep: {force: ""}\n', "keep.force: expected a path, or null for none, got ''"),
        ('lexicon: {saved: "a\\0b"}\n', "lexicon.saved: expected a path, or null for none, got"),
        ('output: {names_from: ""}\n', "output.names_from: expected a path, or null for none, got ''"),
        ("5: {}\n", "5: "),
        ("sketch: {5: 1}\n", "sketch.5: "),
    ],
)
def test_files_that_are_no_settings_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """Invalid YAML, and YAML that is not a mapping of sections, are each refused in one line."""
    path = written(tmp_path, text)

    assert refusal(path=path).startswith(f"{path}: {said}")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """A file that is not UTF-8, and a value that is not, is refused with the encoding that is read."""
    path = tmp_path / "old.yaml"
    path.write_bytes("# настройки\n".encode("cp1251"))

    assert refusal(path=str(path)) == f"{path}: not UTF-8, in which YAML is read: save it in this encoding"
    assert refusal("input.id=\udce9") == "--set: input.id: expected UTF-8, got bytes that are no character in it"
    with pytest.raises(ConfigError, match=r"keep\.same: expected UTF-8"):
        build_config({"keep": {"same": ["a", "\udce9"]}}, origin="test")


def test_a_merged_key_may_be_replaced(tmp_path: Path) -> None:
    """A mapping may have a key that `<<` merges into it, also where two others are merged into that one."""
    text = "pairs: &a {<<: {threshold: 0.5}, threshold: 0.6}\nshingle: {<<: [{length: 3}, {length: 4}], length: 2}\n"
    config = load_config(written(tmp_path, text))

    assert (config.pairs.threshold, config.shingle.length) == (0.6, 2)


def test_a_name_that_is_no_profile_is_refused_with_all_of_them() -> None:
    """A name without folder and ending that is neither a file nor a profile gives the names of the profiles."""
    assert refusal(path="shor").startswith("shor: neither a file nor a profile; profiles: broder1997, corpus, ")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A missing file is named, with the reason why it cannot be read."""
    path = str(tmp_path / "none.yaml")

    assert refusal(path=path) == f"{path}: cannot read the configuration (No such file or directory)"
