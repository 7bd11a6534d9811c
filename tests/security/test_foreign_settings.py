"""A settings file of somebody else costs no more than its length, whatever its aliases name."""

import time
from pathlib import Path

import pytest

from nddup.errors import ConfigError
from nddup.settings.load import load_config


def tenfold(first: str, form: str) -> str:
    """Return lines in which each value names the one before ten times."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{one}: &a{one} {form % ','.join([f'*a{one - 1}'] * 10)}" for one in range(1, 20)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        tenfold("[x, x]", "[%s]") + "pairs: {threshold: *a19}\n",
        tenfold("[x, x]", "[%s]") + "spark: {key: *a19}\n",
        tenfold("{x: 1}", "{<<: [%s]}"),
        "keep: {prefer: &a [*a]}\n",
        "? &a [*a]\n: 1\n",
        "a: &a {<<: *a}\n",
        f"pairs: {{threshold: {':'.join(['59'] * 100_000)}}}\n",
        f"pairs: {{threshold: {'9' * 100_000}}}\n",
        "".join(f"k{number}: 1\n" for number in range(2_000)),
        "x" * (1 << 20) + ": 1\n",
        f"a: &a {'x' * 500_000}\nkeep: {{prefer: [{','.join(['*a'] * 3_000)}]}}\n",
        f"pairs: {{threshold: {':'.join(['59'] * 3_000)}.5}}\n",
        "keep: {prefer: !!timestamp x}\n",
        "keep: {prefer: !!bool x, policy: !!int ''}\n",
    ],
    ids=["list", "spark", "merge", "itself", "key", "merge itself", "base 60", "digits", "keys", "long", "long texts",
         "too large", "no date", "no bool"],
)  # fmt: skip
def test_a_settings_file_is_read_within_bounds(tmp_path: Path, text: str) -> None:
    """Aliases of aliases, values within themselves, long numbers and many keys: one line, after little work."""
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    began = time.process_time()
    with pytest.raises(ConfigError) as refused:
        load_config(str(file))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 5_000
    assert time.process_time() - began < 5


def test_aliases_may_be_used(tmp_path: Path) -> None:
    """An alias means what it names."""
    file = tmp_path / "settings.yaml"
    file.write_text("keep: {prefer: &a [one, two]}\nspark: {spark.a: &b x, spark.b: *b}\n")
    config = load_config(str(file))
    assert config.spark == {"spark.a": "x", "spark.b": "x"}
