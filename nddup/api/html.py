"""Tables and facts as HTML for a notebook, without colours of its own, so that light and dark themes both work."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

LONGEST = 120
"""Largest number of characters shown of a value."""

_CELL = "padding:2px 10px 2px 0;vertical-align:top;text-align:"
_CAPTION = "text-align:left;white-space:nowrap;opacity:.75"
_ITEMS = 6
"""Largest number of items shown of a list."""


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "") -> str:
    """Return rows under headings. Numbers are right-aligned; every value is escaped."""
    body = [
        "<tr>" + "".join(f'<td style="{_CELL}{_side(value)}">{cell(value)}</td>' for value in row) + "</tr>"
        for row in rows
    ]
    head = "".join(f'<th style="{_CELL}left">{escape(name)}</th>' for name in headings)
    said = f'<caption style="{_CAPTION}">{escape(caption)}</caption>' if caption else ""
    return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def facts(title: str, values: Mapping[str, Any], *, sentence: str = "") -> str:
    """Return a title, a sentence, and a table of named values."""
    rows = "".join(
        f'<tr><th style="{_CELL}left;font-weight:600">{escape(name)}</th>'
        f'<td style="{_CELL}left">{cell(value)}</td></tr>'
        for name, value in values.items()
    )
    said = f"<p>{escape(sentence)}</p>" if sentence else ""
    return f"<h4>{escape(title)}</h4>{said}<table><tbody>{rows}</tbody></table>"


def cell(value: Any) -> str:  # noqa: ANN401 - of any column
    """Return a value as escaped text: long values are cut, integers have thousands separators, null is a dash."""
    return escape(_spell(value))


def _spell(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        more = f", … {len(value):,} in all" if len(value) > _ITEMS else ""
        return ", ".join(_short(str(one)) for one in value[:_ITEMS]) + more
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _side(value: Any) -> str:  # noqa: ANN401
    return "right" if isinstance(value, (int, float)) and not isinstance(value, bool) else "left"
