"""Measurements that are stored, so that none is made twice."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Values = dict[str, Any]


class Cells:
    """The results of the experiments, in one file of JSON lines, by table and key.

    Args:
        path: the file, made with the first result; a later run continues from its content.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._made: dict[str, Values] = {
            _name(row["table"], row["key"]): row["values"] for row in map(json.loads, lines)
        }

    def get(self, table: str, key: Mapping[str, object], make: Callable[[], Values]) -> Values:
        """Return the values of a cell, which are measured and stored at once if they are missing.

        Args:
            table: name of a table of the papers.
            key: the row, or part, of the table.
            make: measures the values.
        """
        name = _name(table, key)
        if name not in self._made:
            started = time.monotonic()
            self._made[name] = make()
            row = {"table": table, "key": dict(key), "values": self._made[name]}
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(f"  {table}: {_told(key)}  {time.monotonic() - started:.1f} s", flush=True)
        return self._made[name]

    def of(self, table: str, name: str | None, values: Iterable[Any], **rest: object) -> Iterator[tuple[Any, Values]]:
        """Yield a table's stored cells by the values of one part of the key; without a name, its only cell."""
        for value in values:
            key = {**rest, name: value} if name else rest
            if _name(table, key) in self._made:
                yield value, self._made[_name(table, key)]

    def all(self, table: str, *names: str) -> Iterator[tuple[tuple[Any, ...], Values]]:
        """Yield a table's stored cells whose keys have just these parts, and their values, as they were measured."""
        for name, made in self._made.items():
            of, key = json.loads(name)
            if of == table and key.keys() == set(names):
                yield tuple(key[part] for part in names), made


def _name(table: str, key: Mapping[str, object]) -> str:
    return json.dumps([table, dict(key)], sort_keys=True)


def _told(key: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in key.items())
