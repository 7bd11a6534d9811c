"""A column, a mode of clusters and a streamed format that are declared while nddup is loaded, by its recipes.

python -m tests.declared_facts FOLDER    a run, its check, a repository and its check, and what show prints of each
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

LETTERS, TWOS, CARDS = "n_letters", "twos", "cards"
START = b"CARDS\n"


def declare_column() -> None:
    """`documents` gets the number of bytes of each text."""
    from nddup import tables  # noqa: PLC0415 - before the modules that read what is declared

    meaning = "number of bytes of the text in UTF-8"
    column = tables.Column(LETTERS, "long", meaning, of_content=True, is_stored=True, proved_by="records",
                           may_lack=True, came_later=True)  # fmt: skip
    for name in ("DOCUMENTS", "RECORDS"):
        table = getattr(tables, name)
        setattr(tables, name, replace(table, columns=(*table.columns, column)))
    tables.RESULTS["documents"] = tables.READABLE["documents"] = tables.DOCUMENTS

    from nddup.scanning import sketch_records  # noqa: PLC0415 - likewise

    read: Callable[..., Any] = sketch_records._read  # noqa: SLF001 - where a recipe adds a line

    def read_letters(*how: Any) -> Any:  # noqa: ANN401 - as `_read`
        columns, (data, bounds) = read(*how)
        return {**columns, LETTERS: pa.array(np.diff(bounds))}, (data, bounds)

    sketch_records._read = read_letters  # type: ignore[assignment]  # noqa: SLF001


def declare_mode() -> None:
    """Each near-duplicate is in a set with at most one other: disjoint sets of two, which do not hold every pair."""
    from nddup.mining import modes  # noqa: PLC0415 - likewise

    made = modes.ClusterMode(TWOS, "sets of two", "two near-duplicates", promises="sets", is_joint=True)
    modes.MODES = MappingProxyType({**modes.MODES, TWOS: made})  # type: ignore[misc]
    modes.MEANINGS = MappingProxyType({**modes.MEANINGS, TWOS: made.means})  # type: ignore[misc]
    modes.DIVIDING = (*modes.DIVIDING, TWOS)  # type: ignore[misc]

    from nddup.mining import cluster_modes  # noqa: PLC0415 - likewise

    def divide(problem: cluster_modes.Problem) -> tuple[Any, Any]:
        taken = list[int]()
        for ends in problem.edges.tolist():
            taken += [] if set(ends) & set(taken) else ends
        return np.array(taken, np.int32), np.arange(0, len(taken) + 1, 2)

    cluster_modes.DIVIDED[TWOS] = divide


def declare_format() -> None:
    """Cards: a line with the id, and a line with the text."""
    from nddup.reading import formats  # noqa: PLC0415 - likewise

    kind: Any = CARDS
    formats.FILE_KINDS[kind] = formats.FileKind(has_columns=False, starts=(START,), holds="the lines of each card")
    formats.FORMATS[CARDS] = formats.Format(name=CARDS, kind=kind)

    from nddup.reading import containers  # noqa: PLC0415 - likewise
    from nddup.reading.outcomes import Record, Reject  # noqa: PLC0415

    def read(stream: Any, head: formats.FileHead, how: containers.ReadAs) -> Iterator[Record | Reject]:  # noqa: ANN401
        del head
        lines = stream.read(how.max_record).decode().splitlines()[1:]
        for name, text in zip(lines[::2], lines[1::2], strict=True):
            yield Record(name, None, (text,), is_markup=None)

    containers.READERS[CARDS] = read


def write_cards(path: Path) -> None:
    """Write three sets of near-duplicates, of four, two and one text."""
    cards = [f"{kind}{at}\n" + " ".join(f"{kind}{word}" for word in range(60)) + f" end{at}\n"
             for kind, many in (("a", 4), ("b", 2), ("c", 1)) for at in range(many)]  # fmt: skip
    path.write_bytes(START + "".join(cards).encode())


def main(folder: Path) -> int:
    """Declare all three, and use them by the commands; the sum of their exit statuses."""
    for declare in (declare_format, declare_mode, declare_column):
        declare()
    from nddup.cli import main as nddup  # noqa: PLC0415 - likewise

    cards, run, repo = folder / "cards.bin", str(folder / "run"), str(folder / "repo")
    write_cards(cards)
    settings = (
        "--set",
        f"clusters.mode={TWOS}",
        "--set",
        "local.processes=1",
        "--set",
        "pairs.threshold=0.6",
        "--set",
        "output.report=false",
    )
    return sum(nddup(command) for command in (
        ["run", str(cards), "--output", run, *settings],
        ["check", run],
        ["show", run, "--doc", "a0"],
        ["inspect", str(cards)],
        ["index", "create", repo, *settings],
        ["index", "add", repo, str(cards)],
        ["index", "check", repo],
        ["index", "tables", repo, "--output", str(folder / "tables")],
        ["check", str(folder / "tables")],
        ["show", str(folder / "tables")],
    ))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
