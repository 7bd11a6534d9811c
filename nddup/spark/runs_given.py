"""`nddup split` and `nddup diff` on Spark: runs on any file system. Steps and results are those of this machine."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from nddup.diffing import diff_tables
from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError
from nddup.results.opening import find_inputs_again, open_on_spark, read_columns_with
from nddup.settings.plan import record_limits
from nddup.spark.engine import SparkRun, frame_of
from nddup.spark.scan import Rewriting
from nddup.spark.session_files import SessionFiles, files_at, files_of
from nddup.spark.session_tables import UNMARKED
from nddup.spark.steps.documents import WorkersOnSpark
from nddup.spark.steps.outputs import rewrite_files
from nddup.splitting.write_split import (
    HEADER,
    JUDGED,
    ROWS,
    SplitCall,
    ToldSplit,
    find_written,
    not_a_split,
    require_room,
    split_run,
)
from nddup.stages.inputs_found import Again
from nddup.storage.local_storage import LocalStorage, require_new


def diff_on_spark(spark: SparkSession, before: str, after: str, output: str | None) -> diff_tables.Difference:
    """Compare two runs, and write the output, if any; errors as of `diff_tables.diff_here`."""
    earlier: Any = open_on_spark(spark, before).run
    later: Any = open_on_spark(spark, after).run
    with _freeing(later):
        if output is None:
            return diff_tables.diff_finished(earlier, later)
        storage = files_at(spark, output)
        require_new(storage, (before, after), output)
        difference = diff_tables.diff_finished(earlier, later)
        with _writing(storage, output, later, diff_tables.queries()):
            storage.write_text(f"{output}/{diff_tables.PAGE}", diff_tables.draw_page(later, before, after, difference))
            storage.write_text(f"{output}/{diff_tables.HEADER}", diff_tables.spell_header(before, after, difference))
        return difference


def split_on_spark(spark: SparkSession, path: str, call: SplitCall) -> tuple[FinishedRun, ToldSplit]:
    """Split a run, and write the output; errors as of `write_split.split_here`.

    Cost: as `split_units`; where columns of --by are read again, the driver holds their values.
    """
    opened = open_on_spark(spark, path)
    run: Any = opened.run
    storage, files = files_at(spark, call.output), files_of(spark)
    require_room(call, storage, opened.folder)
    earlier = None if call.earlier is None else _read_earlier(run.session, call.earlier)
    asked = call.ask(files, earlier)
    again = find_written(opened.folder, files) if call.is_writing else None

    def read_columns(names: tuple[str, ...]) -> DataFrame:
        with WorkersOnSpark(1, spark=spark) as workers:
            again = find_inputs_again(opened.folder, files)
            return frame_of(run.session, read_columns_with(workers, files, again, names, asked="--by"))

    with _freeing(run):
        parts = split_run(run, asked, read_columns)
        with _writing(storage, call.output, run, ROWS):
            written = None if again is None else _write_records(spark, run, call, again)
            storage.write_text(f"{call.output}/{HEADER}", call.spell_header(run, parts, written))
    return run, parts


@contextmanager
def _freeing(run: SparkRun) -> Iterator[None]:
    """Free the tables made beside a run: a session may be the caller's, and go on."""
    try:
        yield
    finally:
        run.forget()


@contextmanager
def _writing(
    storage: SessionFiles | LocalStorage, output: str, run: SparkRun, queries: Mapping[str, str]
) -> Iterator[None]:
    """Make a folder with the answers of a run to some queries, for more files; remove it if anything fails."""
    try:
        storage.make_folder(output)
        for name, text in queries.items():
            rows = run.answer(text).write.options(compression="zstd", **UNMARKED)
            rows.parquet(storage.spelled(f"{output}/{name}"))
        yield
    except BaseException:
        storage.remove(output)
        raise


def _read_earlier(session: SparkSession, path: str) -> DataFrame:
    try:
        rows = session.read.parquet(files_at(session, path).spelled(f"{path}/split"))
        return rows.select("doc_id", "part").where("part IS NOT NULL")
    except AnalysisException as error:
        raise ConfigError(not_a_split(path)) from error


def _write_records(spark: SparkSession, run: Any, call: SplitCall, again: Again) -> dict[str, int]:  # noqa: ANN401
    rewriting = Rewriting(
        is_tagging=False, may_go_on=again.config.input.limit is not None, limits=record_limits(again.config)
    )
    return {
        name: rewrite_files(
            spark, again.collection, run.answer(JUDGED.format(place=place)), f"{call.output}/{name}", rewriting
        ).records
        for place, name in enumerate(call.parts.names)
    }
