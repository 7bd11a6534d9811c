"""The tables and figures of docs/papers.md, from the cells.

The page is written by hand, except the tables of `tables` between `<!-- NAME -->` and `<!-- /NAME -->`.
"""

import re
from pathlib import Path

from bench.papers import figures, tables
from bench.papers.cells import Cells

PAGE = Path("docs/papers.md")


def write(cells: Cells, folder: Path, *, is_small: bool) -> None:
    """Update the page and its figures; a small run writes its tables to its own folder."""
    made = tables.all_tables(cells)
    if is_small:
        (folder / "tables.md").write_text("\n\n".join(f"{name}\n\n{text}" for name, text in made.items()))
        figures.draw(cells, folder)
        return
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    figures.draw(cells, PAGE.with_suffix(""))


def with_tables(page: str, made: dict[str, str]) -> str:
    r"""Return the page with each table between its marks.

    >>> with_tables("a\\n<!-- t -->\\nold\\n<!-- /t -->\\nb", {"t": "new"})
    'a\\n<!-- t -->\\nnew\\n<!-- /t -->\\nb'

    Raises:
        ValueError: if the page has no place for a table.
    """
    for name, text in made.items():
        marked = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
        if not marked.search(page):
            raise ValueError(f"{PAGE}: has no place for the table {name}")
        page = marked.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)  # type: ignore[misc]
    return page
