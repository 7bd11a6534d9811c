"""Near-duplicate document clusters you can trust: in memory on one machine, on Apache Spark beyond it.

    files      --scan-->       records     sketch of each document, or the reason why there is none
    records    --collapse-->   documents   doc_id, source, record, group, sketch        and rejects
    documents  --match-->      matches     near-duplicate sketches; in families with too many pairs, those of leaders
    matches    --expand-->     pairs       near-duplicate documents
    matches    --graph-->      graph       components, kept nodes
    graph      --mine-->       clusters    maximal sets of near-duplicates              and members
    graph      --keep-->       keep        which documents stay

`find_duplicates` makes a run, `open` reads one. `nddup.tables` has the schemas, `nddup.stages.run` the order of a run,
once for both engines, and the `__init__` of each room what it holds and may import (docs/architecture.md).
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["find_duplicates", "open"]

if TYPE_CHECKING:
    from nddup.api.find_duplicates import find_duplicates
    from nddup.api.run_object import open_run as open  # noqa: A004 - `nddup.open`


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import the API only when it is used: `--help` does not need it."""
    if name == "find_duplicates":
        from nddup.api.find_duplicates import find_duplicates  # noqa: PLC0415

        return find_duplicates
    if name == "open":
        from nddup.api.run_object import open_run  # noqa: PLC0415

        return open_run
    raise AttributeError(f"module 'nddup' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the names that an editor completes."""
    return sorted([*globals(), *__all__])
