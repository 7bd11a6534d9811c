"""A file whose records hold the separator is never divided in one of them unnoticed."""

import io
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nddup.embedded import workers
from nddup.embedded.workers import Workers
from nddup.reading.detect import read_head
from nddup.reading.streams import Expanded
from nddup.scanning.collection import find_files
from nddup.scanning.local_files import DividedError, FilePart, read_part
from nddup.scanning.sketch_records import SketchRecords
from nddup.scanning.whole_files import read_stream
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits, sketch_rule
from nddup.spark.session import SPLITTING, set_to
from nddup.storage.local_storage import LocalStorage
from tests.counted_rows import once_each
from tests.run.accounts import run_that_adds_up, table
from tests.samples_by_night import first

PARTS = (
    "<doc><id>{n}</id><text>plain words</text></doc>",
    "<doc><id>{n}</id><text><![CDATA[ends as </doc> does]]></text></doc>",
    "<doc><id>{n}</id><text>holds</text><doc>another</doc></doc>",
    "<!-- <doc><id>{n}</id><text>no record</text></doc> -->",
    "<doc id='{n}'/>",
    "<doc ><id>{n}</id><text>another end</text></doc >",
    "\n",
)


@given(drawn=st.lists(st.sampled_from(PARTS), min_size=1, max_size=8), data=st.data())
def test_parts_give_the_records_of_the_file_or_say_that_they_do_not(drawn: list[str], data: st.DataObject) -> None:
    """Whatever the records hold, parts that end anywhere give those of the whole file, or one raises DividedError."""
    text = f"<docs>{PARTS[0].format(n='first')}{''.join(part.format(n=n) for n, part in enumerate(drawn))}</docs>"
    content, head = text.encode(), read_head(b"<docs><doc><id>0</id><text>a</text></doc></docs>")
    whole = [record for record, _ in read_stream(Expanded(io.BytesIO(content), ""), head, 1 << 20)]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(content) - 1), min_size=1, max_size=3)))

    found, is_divided = [], False
    with NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        for start, end in pairwise([0, *cuts, len(content)]):
            try:
                found += [one.record for one in read_part(FilePart(file.name, "a", start, end), head, 1 << 20)]
            except DividedError:
                is_divided = True

    assert is_divided or found == whole


@pytest.fixture
def late(tmp_path: Path) -> Path:
    """Return a file with two records in three that hold the separator, after a start that shows none, as a Path."""
    rows = [PARTS[0].format(n=f"start{n}") for n in range(6_000)]
    rows += [PARTS[n % 3].format(n=n).replace("words", "words " * 50) for n in range(600)]
    (tmp_path / "late.xml").write_text(f"<docs>{''.join(rows)}</docs>")
    return tmp_path / "late.xml"


@pytest.mark.parametrize("count", first(1, [2, 1]))
def test_a_file_divided_in_a_record_is_read_from_its_start(
    late: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that hold the separator only late in a file are found as XML finds them, here and in processes."""
    monkeypatch.setattr(workers, "TASK_BYTES", 4_099)
    monkeypatch.setattr(workers, "FEW_BYTES", 0)
    config = build_config({"input": {"record": "doc", "id": "id"}}, origin="test")
    with Workers(count) as some:
        collection = find_files(LocalStorage(), [str(late)], config.input)
        rows = some.scan(collection, SketchRecords(sketch_rule(config)), record_limits(config))

    assert not collection.groups[0].is_whole
    assert some.read_again == {"late.xml"}
    assert rows["doc_id"].to_pylist() == [f"start{n}" for n in range(6_000)] + [str(n) for n in range(600)]
    assert rows["reason"].null_count == len(rows)


def test_a_file_divided_in_a_record_by_spark_is_read_from_its_start(spark: SparkSession, late: Path) -> None:
    """The same on Spark, whose tasks read splits of a few kilobytes."""
    with set_to(spark, dict(zip(SPLITTING, ("9001", "0", "1"), strict=True))):
        metrics = run_that_adds_up(late.parent / "run", late, spark=spark, input={"record": "doc", "id": "id"})

    assert metrics["stages"]["sketch"]["files_read_again"] == 1
    assert metrics["stages"]["sketch"]["rejected"] == {}
    ids = once_each((row["doc_id"], row["record"]) for row in table(late.parent / "run", "documents"))
    assert ids == {name: n for n, name in enumerate([*(f"start{n}" for n in range(6_000)), *map(str, range(600))], 1)}
