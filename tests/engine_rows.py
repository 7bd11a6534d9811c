"""Small tables for a stage on either engine, and the rows of what it makes."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from nddup.engines.duck import DuckEngine
from nddup.engines.engine import Engine
from nddup.tables import Table
from tests.counted_rows import once


def see_rows(engine: Engine, table: Table, rows: Iterable[Mapping[str, Any]], *, name: str = "") -> None:
    """Give an engine rows under the name of their table, or another; columns that a row lacks are null."""
    see_table(engine, name or table.name, pa.Table.from_pylist(list(rows), table.arrow))


def see_table(engine: Engine, name: str, table: pa.Table) -> None:
    """Give an engine a table under a name."""
    if isinstance(engine, DuckEngine):
        engine.see(name, table)
        return
    from nddup.spark.engine import SparkEngine, frame_of  # noqa: PLC0415 - for Spark alone

    assert isinstance(engine, SparkEngine)
    engine.see(name, frame_of(engine.session, table))


def rows_of(answer: Any) -> set[tuple[Any, ...]]:  # noqa: ANN401 - of either engine
    """Return the rows of an answer, none twice; lists become tuples, and doubles are rounded to 12 digits."""
    table = answer if isinstance(answer, pa.Table) else answer.toArrow()
    return once(tuple(map(_plain, row.values())) for row in table.to_pylist())


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, float):
        return round(value, 12)
    return tuple(value) if isinstance(value, list) else value


def engine_over(session: Any) -> Engine:  # noqa: ANN401 - a Spark session
    """Return the embedded engine if there is no session, else Spark's."""
    if session is None:
        return DuckEngine("test")
    from nddup.spark.engine import SparkEngine, session_beside  # noqa: PLC0415 - for Spark alone

    return SparkEngine(session_beside(session))
