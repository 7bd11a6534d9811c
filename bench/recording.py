"""Output of every measurement: a plain table on the terminal and one line in build/bench/results.jsonl."""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BUILD = Path("build/bench")
"""Folder for everything that a measurement writes, below the folder in which it is started."""


def record(name: str, options: argparse.Namespace, **values: Any) -> None:  # noqa: ANN401
    """Append the numbers of a measurement, with its time, revision and load."""
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607
    line = {
        "name": name,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "revision": revision.stdout.strip(),
        "small": options.small,
        "cores": options.cores,
        "load": round(os.getloadavg()[0], 2),
        **values,
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def show(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with its first column aligned left and the others right."""
    cells = [[str(heading) for heading in headings], *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    print(f"\n{title}")
    for row in cells:
        first, *others = [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join([first, *others]).rstrip())
    sys.stdout.flush()


def write_table(path: Path, notes: Sequence[str], headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to PATH.md, below the notes, and to PATH.csv."""
    cells = [list(headings), *[[_cell(value) for value in row] for row in rows]]
    rule = ["---", *["---:"] * (len(headings) - 2), "---"]
    lines = ["| " + " | ".join(row) + " |" for row in (cells[0], rule, *cells[1:])]
    path.with_suffix(".md").write_text("\n".join([*notes, "", *lines]) + "\n", encoding="utf-8")
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([headings, *rows])


def fresh(name: str) -> Path:
    """Create an empty folder build/bench/NAME."""
    path = BUILD / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def drop(*paths: Path) -> None:
    """Delete files and folders, if they exist."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _cell(value: object) -> str:
    if isinstance(value, float):
        is_share = abs(value) < 2 and value != round(value, 1)  # noqa: PLR2004 - shares get four digits
        return f"{value:,.4f}" if is_share else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
