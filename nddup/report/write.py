"""Write the folder of a report: `index.html`, `assets/` (styles, scripts, licences) and `data/`.

The report opens from disk without a network. A page opened from disk may not fetch files but may load scripts, so each
chunk of data is a script that hands over one value. Documents may be hostile: their ids, addresses and texts occur only
in string literals of these scripts, and the page puts them into text nodes.

Write the report of a finished run into its folder.
"""

import json
import re
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

from nddup.engines.engine import FinishedRun
from nddup.report.borderline import draw_page
from nddup.report.data import chunks
from nddup.report.gather import Asked, gather
from nddup.shown import drop_login
from nddup.storage.run_folder import RunFolder

SCRIPTS = (
    "data", "dom", "route", "charts", "csv", "list", "find", "overview", "browser", "documents", "differ", "compare",
    "cluster", "document", "graph", "family", "quality", "details", "main",
)  # fmt: skip
ASSETS = (
    "report.css", "theme.js", "chart.umd.min.js", *(f"{name}.js" for name in SCRIPTS), "LICENSE-chartjs.txt",
)  # fmt: skip

_UNSAFE = re.compile("[<>&\u007f-\u009f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
"""Characters with a meaning in HTML or scripts, and those that UTF-8 cannot encode."""

Put = Callable[[str, str], None]
"""Writes a text file, given its path in the folder and its text."""


def write_report(put: Put, chunks: Iterable[tuple[str, Any]]) -> int:
    """Write a report: data first, page last, so that the page exists only once everything that it loads does.

    Args:
        put: writes a file.
        chunks: (name, value) as `data.chunks` yields them.

    Returns:
        The number of characters written.
    """
    written = 0
    for name, value in chunks:
        text = script_of(name, value)
        put(f"data/{name}.js", text)
        written += len(text)
    folder = files("nddup.report").joinpath("assets")
    for name in (*(f"assets/{name}" for name in ASSETS), "index.html"):
        text = folder.joinpath(name.removeprefix("assets/")).read_text(encoding="utf-8")
        put(name, text)
        written += len(text)
    return written


def script_of(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON value
    r"""Return a chunk as a script.

    Example:
        >>> script_of("a-0", {"text": "</script>\u2028"})
        'nddup.put("a-0",{"text":"\\u003c/script\\u003e\\u2028"});\n'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f'nddup.put("{name}",{_UNSAFE.sub(_escape, text)});\n'


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


PAGE = "report/index.html"


def report_run(run: FinishedRun, folder: RunFolder, asked: Asked | None = None) -> str:
    """Write `report/` into the folder of a finished run, replacing an earlier report.

    `borderline.html` beside the report's page shows the pairs closest to the threshold.

    Args:
        run: the run, opened.
        folder: the folder of the same run.
        asked: clusters and documents whose texts are read again from the inputs if they are not stored.

    Returns:
        The path of the report's page.

    Raises:
        OutputError: if the folder cannot be written.
        ConfigError: if there is no such cluster, or an input no longer exists.
        NddupError: if inputs must be read again and have changed since the run.
    """
    shown = gather(run, asked)
    page = draw_page(run)
    folder.remove("report")
    if page is not None:
        folder.write_text("report/borderline.html", page)
    write_report(lambda name, text: folder.write_text(f"report/{name}", text), chunks(shown))
    return f"{drop_login(folder.path)}/{PAGE}"


def is_reported(folder: RunFolder) -> bool:
    """Return whether the report of a run was written to its end: its page is written last."""
    return folder.holds(PAGE)
