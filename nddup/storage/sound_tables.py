"""Checks of the values of a table that anyone may have written: a digest proves only that its writer wrote it.

find_fault_in_table            a table, or some rows or columns  -> why it cannot be what was written
require_sound, require_types   a table of a run, a file of it    -> an error
"""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from nddup.errors import OutputError
from nddup.tables import table_called

FINGERPRINT = 16
"""Bytes of a fingerprint and of a digest."""

NEVER_NEGATIVE = frozenset(
    ["doc_key", "node", "node_a", "node_b", "component_key", "n_tokens", "n_features", "version", "row", "place",
     "holders", "feature", "rows", "record"]
)  # fmt: skip


def require_sound(table: pa.Table, name: str, path: str, *, values: int | None = None) -> None:
    """Refuse rows of a table of a run in `path` that no run writes.

    Args:
        values: the length of each list in `policy`; None: any.

    Raises:
        OutputError: one line with the fault.

    Cost: as `find_fault_in_table`.
    """
    declared = table_called(name)
    fault = find_fault_in_table(table, declared.arrow, may_lack=declared.named("may_lack"))
    if fault is None and values is not None and "policy" in table.column_names:
        lengths = pc.unique(pc.list_value_length(table["policy"]).drop_null()).to_pylist()
        fault = None if {*lengths} <= {values} else f"policy holds lists of {lengths} values, not {values}"
    if fault is not None:
        raise OutputError(f"{path}: holds what nddup does not write: {name}.{fault}")


def require_types(schema: pa.Schema, name: str, path: str) -> None:
    """Refuse a file whose columns have other types than those of this name in a table of a run: OutputError."""
    for field in table_called(name).arrow:
        at = schema.get_field_index(field.name)
        if at >= 0 and schema.field(at).type != field.type:
            raise OutputError(
                f"{path}: holds what nddup does not write: {name}.{field.name} is {schema.field(at).type}"
            )


def find_fault_in_table(table: pa.Table, declared: pa.Schema, *, may_lack: Collection[str]) -> str | None:
    """Return in words why a table, or some columns of it, cannot be what was written; None if it can.

    Args:
        may_lack: the columns that may hold nulls. A list holds none but in `policy`, the values of a record.

    Cost: a pass over the columns; of texts, some 1 GB a second.
    """
    try:
        table.validate(full=True)
    except pa.ArrowException as error:
        return str(error).partition("\n")[0]
    if any(declared.get_field_index(field.name) < 0 or declared.field(field.name) != field for field in table.schema):
        return "other columns than the table has"
    faults = (_find_fault_in_column(name, table[name], may_lack) for name in table.column_names)
    return next((fault for fault in faults if fault), None)


def _find_fault_in_column(name: str, values: pa.ChunkedArray, may_lack: Collection[str]) -> str | None:
    has_null = name not in may_lack and values.null_count
    is_whole = pa.types.is_list(values.type) and name != "policy"
    if has_null or (is_whole and any(chunk.values.null_count for chunk in values.chunks)):
        return f"{name} holds a null"
    if pa.types.is_binary(values.type) and pc.any(pc.not_equal(pc.binary_length(values), FINGERPRINT)).as_py():
        return f"{name} holds a value of another length"
    if pa.types.is_floating(values.type) and pc.any(pc.invert(pc.is_finite(values))).as_py():
        return f"{name} holds no number"
    if name == "date" and not _are_dates(values):
        return "date holds none"
    if name in NEVER_NEGATIVE and len(values) and (pc.min(values).as_py() or 0) < 0:
        return f"{name} holds a negative number"
    return None


def _are_dates(values: pa.ChunkedArray) -> bool:
    try:
        values.cast(pa.timestamp("s", "UTC"))
    except pa.ArrowException:
        return False
    return True
