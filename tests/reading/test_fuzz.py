"""Damaged files of every format: each chunk is a record, a reject or nothing, repeatably, quickly and without a crash.

`python -m bench fuzz` does the same for millions of records.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.fuzz import SLOW, Findings, damaged_files, front, fuzz, read_damaged
from bench.fuzz_resumes import fuzz_resumes
from bench.fuzz_settings import fuzz_settings
from bench.fuzz_values import ALLOWED, ALLOWED_A_BYTE, MOST_BYTES, READERS, fuzz_values
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS
from tests.reading.test_formats import GOLDEN, MEDIAWIKI
from tests.samples_by_night import first

ROMIP = b"""<d><document><docID>1</docID><docURL>aHR0cDovL2EvMQ==</docURL>
<content encoding='base64'>7/Do4uXy</content></document>
<document><docID>2</docID><content encoding='base64'>PGI+YTwvYj4=</content></document></d>"""
KOI8 = b"""<?xml version='1.0' encoding='koi8-r'?><r><doc><id>1</id><text>\xf0\xf2</text></doc>
<doc><id>2</id><text>b</text></doc></r>"""
JSON = b'{"id": "1", "url": "u", "text": "one"}\n{"id": 2, "text": "two \\u044f"}\n'
SAMPLES = [*(data for _, data, _, _ in GOLDEN), MEDIAWIKI.encode("utf-16"), KOI8, ROMIP, JSON]


def test_every_format_is_damaged() -> None:
    """Every format that is cut at a separator has a sample here, so that it is fuzzed."""
    cut = {name for name, declared in FORMATS.items() if declared.kind in {"xml", "sgml", "jsonl"}}

    assert {read_head(sample).format.name for sample in SAMPLES} == cut


@pytest.mark.parametrize("seed", first(1, [1, 2, 3]))
def test_damaged_files(seed: int) -> None:
    """Nothing raises, no record takes longer than `SLOW`, reading again gives the same, and all outcomes occur."""
    for sample in SAMPLES:
        read_damaged(sample, read_head(sample), Findings(), "loads the kernels")

    findings = fuzz(SAMPLES, 4_000, seed)

    assert findings.slowest < SLOW, findings.slowest_at
    assert {"record", "no record", "reject: malformed", "reject: truncated"} <= set(findings.outcomes)
    assert findings.outcomes["record"] > findings.chunks // 10


def test_a_damaged_file_can_be_made_again() -> None:
    """A damaged file can be made again from its seed and its number."""
    one, other = (next(damaged_files(SAMPLES, 7)) for _ in range(2))

    assert one == other


def test_a_sample_is_cut_at_a_record() -> None:
    """The front of a large file holds whole records, and at least one."""
    data = b"<r>" + b"<doc><id>1</id><text>abc</text></doc>" * 1000 + b"</r>"
    cut = front(data, read_head(data))

    assert len(cut) < 20_000
    assert cut.endswith(b"</doc>")
    assert all(read_damaged(cut, read_head(cut), Findings(), ""))


def test_fragments_repeated_and_damaged_values() -> None:
    """No reader of heads, declarations, lists, containers or markup raises an unexpected error or takes too long."""
    seen = fuzz_values(3_000, 1)

    assert set(seen.cases) == {reader.name for reader in READERS}
    assert seen.slowest < ALLOWED + ALLOWED_A_BYTE * 2 * MOST_BYTES, seen.slowest_at


def test_any_setting_is_accepted_or_refused_in_one_line() -> None:
    """YAML and assignments, valid or not, are accepted or refused in one line."""
    outcomes = fuzz_settings(300, 1)

    assert outcomes["accepted"] > 30
    assert outcomes["refused"] > 100


@pytest.mark.nightly  # by day `run/test_resume.py` kills and damages runs
def test_killed_and_damaged_runs_are_resumed(spark: SparkSession, tmp_path: Path) -> None:
    """Resuming a killed or damaged run gives the same tables, whatever was left; `run/test_resume.py` has more."""
    seen = fuzz_resumes(spark, 1, 1, tmp_path)

    assert seen["resumes"] == 1
