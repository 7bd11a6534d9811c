"""The frame of every page: head, header with navigation, and footer. Without scripts unless `scripts` names some.

A page loads nothing but its own folder's files, and its policy says so: documents may be hostile. What is inserted here
is HTML, escaped by the caller.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import NamedTuple

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · nddup</title>
{style}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="site"><div class="bar"><p class="brand">{brand}</p>
<nav aria-label="{navigation}">{links}</nav>{button}</div></header>
<main id="main" tabindex="-1">
{body}
</main>
<footer class="site"><p>Made by nddup. Everything shown lies in this {place}; nothing is fetched.</p></footer>
{scripts}</body>
</html>
"""

SCRIPTED = (
    "script-src 'self'; {style}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script';"
    " trusted-types nddup"
)

VIEWS = (
    "overview", "clusters", "documents", "document", "family", "compare", "cluster", "judge", "quality", "run",
)  # fmt: skip
"""The views of the report, each a section that its script fills."""

BODY = """<p id="opening" class="opening" role="status">Opening the report…</p>
<noscript><p class="opening">This report needs JavaScript. It loads nothing but the files in its own folder.</p>
</noscript>
{sections}"""


class Link(NamedTuple):
    """An entry of the navigation; of the report, `view` is the view that it leads to."""

    address: str
    text: str
    view: str = ""


REPORT_LINKS = (
    Link("#/", "Overview", "overview"),
    Link("#/documents?outcome=family&sort=stands", "Families", "families"),
    Link("#/documents", "Documents", "documents"),
    Link("#/quality", "Quality", "quality"),
    Link("#/run", "Run", "run"),
)


def read_style() -> str:
    """Return the style sheet of all pages."""
    return files("nddup.report").joinpath("assets", "report.css").read_text(encoding="utf-8")


def join_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ascending runs of characters, joined where they overlap or touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return joined


def draw_number(name: str, number: str, note: str) -> str:
    """Return one of the numbers on top of a page."""
    noted = f'<span class="note">{escape(note)}</span>' if note else ""
    return f'<div><dt>{escape(name)}</dt><dd><span class="big">{escape(number)}</span>{noted}</dd></div>'


def draw_page(  # noqa: PLR0913
    title: str, body: str, links: Sequence[Link], *, label: str, sheet: str | None = None, script: Iterable[str] = ()
) -> str:
    """Return a page.

    Args:
        body: what stands between header and footer.
        label: of what kind the page is, beside the name of the program.
        sheet: address of the style sheet; None: it stands in the page, which is then one file.
        script: addresses of scripts, the first of which runs before anything is drawn.
    """
    first, *others = script or [""]
    if sheet is None:
        text = read_style()
        style, allowed = f"<style>{text}</style>", f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    else:
        style, allowed = f'<link rel="stylesheet" href="{sheet}">', "'self'"
    rule = f"style-src {allowed}"
    return PAGE.format(
        policy=SCRIPTED.format(style=rule) if first else rule,
        title=title,
        style=f'{style}\n<script src="{first}"></script>' if first else style,
        brand=f'<a href="#/">nddup</a> <span class="run" id="run-path">{label}</span>'
        if first
        else f'nddup <span class="run">{label}</span>',
        navigation="Report" if first else "Page",
        links="".join(_draw_link(link) for link in links),
        button='\n<button type="button" id="theme" class="quiet">Theme: auto</button>' if first else "",
        body=body,
        place="file" if sheet is None else "folder",
        scripts="".join(f'<script src="{one}"></script>\n' for one in others),
    )


def _draw_link(link: Link) -> str:
    view = f' data-view="{link.view}"' if link.view else ""
    return f'<a href="{escape(link.address)}"{view}>{link.text}</a>'


def draw_report(scripts: Iterable[str]) -> str:
    """Return the page of the report, whose views are drawn by scripts."""
    sections = "\n".join(
        f'<section id="{view}" class="view" aria-labelledby="{view}-title" hidden></section>' for view in VIEWS
    )
    sheet, addresses = "assets/report.css", [f"assets/{name}" for name in scripts]
    return draw_page(
        "Near-duplicates", BODY.format(sections=sections), REPORT_LINKS, label="", sheet=sheet, script=addresses
    )
