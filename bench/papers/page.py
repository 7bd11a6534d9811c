"""The tables and figures of docs/papers.md and of the pages in docs/papers/, from the cells.

The pages are written by hand, except the tables between `<!-- NAME -->` and `<!-- /NAME -->`. In the opening mark, a
colon and starts of rows (`<!-- miners: first | 60; second | 60 -->`) show only these. A table that no page shows whole
is a CSV file in docs/papers/, `NAME.csv`, which a page links.
"""

import re
from pathlib import Path

from bench.papers.cells import Cells
from bench.papers.tables import Table, all_tables

PAGE = Path("docs/papers.md")
_PLACE = re.compile(
    r"(?<=<!-- )(?P<name>[\w-]+)(?:: (?P<starts>[^\n]+))?(?= -->\n).*?(?=<!-- /(?P=name) -->)", re.DOTALL
)


def write(cells: Cells, folder: Path, *, is_published: bool) -> None:
    """Update the pages, their CSV files and figures; another collection, or a small run, has all in its own folder."""
    made = all_tables(cells)
    if is_published:
        folder = PAGE.with_suffix("")
        write_pages(made, PAGE, folder)
    else:
        write_files(made, folder)
        text = "\n\n".join(f"{name}\n\n{table.markdown()}" for name, table in made.items())
        (folder / "tables.md").write_text(f"{text}\n", encoding="utf-8")
        print(f"\nThe tables are in {folder / 'tables.md'}, each also as a CSV file, and the figures, beside it")
    from bench.papers import figures  # noqa: PLC0415 - Matplotlib, for the figures alone

    figures.draw(cells, folder)


def write_pages(made: dict[str, Table], page: Path, folder: Path) -> None:
    """Update the tables of a page, and of the pages in a folder, and write the CSV files of the others.

    Raises:
        ValueError: a page neither shows nor links a table; nothing is written.
    """
    pages = {path: path.read_text(encoding="utf-8") for path in (page, *sorted(folder.glob("*.md")))}
    whole = {found["name"] for text in pages.values() for found in _PLACE.finditer(text) if not found["starts"]}
    files = {name: table for name, table in made.items() if name not in whole}
    if missing := [name for name in files if not any(f"{name}.csv)" in text for text in pages.values())]:
        raise ValueError(f"{page} and its folder: no place for the tables {', '.join(sorted(missing))}")
    for path, text in pages.items():
        path.write_text(with_tables(text, made), encoding="utf-8")
    write_files(files, folder)


def write_files(made: dict[str, Table], folder: Path) -> None:
    """Write each table as a CSV file."""
    for name, table in made.items():
        (folder / f"{name}.csv").write_text(table.csv(), encoding="utf-8")


def with_tables(page: str, made: dict[str, Table]) -> str:
    r"""Return a page with each table between its marks; a place without a new table keeps its content.

    >>> with_tables("a\n<!-- t: 2 -->\nold\n<!-- /t -->\nb", {"t": Table(["n"], [[1], [2]])})
    'a\n<!-- t: 2 -->\n| n |\n|---|\n| 2 |\n<!-- /t -->\nb'
    """

    def fill(found: re.Match[str]) -> str:
        if not (table := made.get(found["name"])):
            return found[0]
        name, starts = found["name"], found["starts"]
        mark = f"{name}: {starts}" if starts else name
        return f"{mark} -->\n{table.markdown(starts.split('; ') if starts else ())}\n"

    return _PLACE.sub(fill, page)
