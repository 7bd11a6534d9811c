"""The tables and figures of docs/papers.md and of the pages in docs/papers/, from the cells.

The pages are written by hand, except the tables of `tables` between `<!-- NAME -->` and `<!-- /NAME -->`: each has its
place in one of them.
"""

import re
from pathlib import Path

from bench.papers import figures, tables
from bench.papers.cells import Cells

PAGE = Path("docs/papers.md")
_PLACE = re.compile(r"(?<=<!-- )([\w-]+)( -->\n).*?(<!-- /\1 -->)", re.DOTALL)


def write(cells: Cells, folder: Path, *, is_published: bool) -> None:
    """Update the pages and their figures; a small run, or one of another collection, writes to its own folder."""
    made = tables.all_tables(cells)
    if not is_published:
        (folder / "tables.md").write_text("\n\n".join(f"{name}\n\n{text}" for name, text in made.items()) + "\n")
        figures.draw(cells, folder)
        print(f"\nThe tables are in {folder / 'tables.md'}, the figures beside it")
        return
    folder_of_pages = PAGE.with_suffix("")
    pages = {path: path.read_text(encoding="utf-8") for path in (PAGE, *sorted(folder_of_pages.glob("*.md")))}
    placed = {found[1] for text in pages.values() for found in _PLACE.finditer(text)}
    if missing := made.keys() - placed:
        raise ValueError(f"{PAGE} and its folder: no place for the tables {', '.join(sorted(missing))}")
    for path, text in pages.items():
        path.write_text(with_tables(text, made), encoding="utf-8")
    figures.draw(cells, folder_of_pages)


def with_tables(page: str, made: dict[str, str]) -> str:
    r"""Return a page with each table between its marks; a place without a new table keeps its content.

    >>> with_tables("a\n<!-- t -->\nold\n<!-- /t -->\nb", {"t": "new"})
    'a\n<!-- t -->\nnew\n<!-- /t -->\nb'
    """

    def fill(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}{made[found[1]]}\n{found[3]}" if found[1] in made else found[0]

    return _PLACE.sub(fill, page)
