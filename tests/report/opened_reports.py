"""The content of the reports that tests open in a browser, and a page that records faults."""

from typing import Any

from playwright.sync_api import Browser, Page, Request

from tests.places import ROOT
from tests.report.made_reports import Document

SCRIPTS = ROOT / "scripts"
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync")  # fmt: skip
LONG = " ".join(f"word{number}" for number in range(200))
WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
EDITED = WORDS.replace("eight nine", "EIGHT changed words here nine") + " and an end"
HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
ODD = "\u2028\u2029 \ufeff\x00\x1b \ufffd \uffff \u202e backwards ]]> --> ${hacked} `'\"\\"
EVALUATION: dict[str, Any] = {
    "format": 1,
    "path": "truth.csv",
    "list": {"kind": "pairs", "lines": 10, "ids": 12, "unknown_ids": 1, "unknown_pairs": 2, "unreadable": 1},
    **{
        side: {"reference": 10, "found": 9, "unique_to_reference": 3, "unique_to_run": 2, "common": 7,
               "precision": 7 / 9, "recall": 0.7, "f1": 0.7368, "recall_of_known": 0.875}
        for side in ("pairs", "clusters")
    },
    "unlisted": 4,
    "curves": {
        "score": [{"at": 0.5 + n / 10, "reference": 10 - n, "common": 7, "together": 7, "precision": 0.7,
                   "recall": None if n else 1.0} for n in range(4)],
        "resemblance": [{"at": 0.8, "found": 9, "common": 7, "precision": 0.8, "recall": 0.7}],
    },
    "lists": {"unique_to_reference": {"file": "evaluation/unique_to_reference.csv", "rows": 3, "of": 3},
              "unique_to_run": {"file": None, "rows": 0, "of": 2}},
}  # fmt: skip
CLUSTERS: list[list[Document]] = [
    [("b", "https://example.org/kept.html", WORDS), ("a", "https://example.org/edited.html", EDITED),
     ("c", "https://example.org/Third.html", WORDS + " more")],
    [("long", None, LONG + " tail"), ("longer", None, LONG + " other end")],
    [(f"{HOSTILE}{ODD}", "javascript:window.hacked=1", f"{HOSTILE} {ODD} shared words of both texts"),
     ("</script>", "java\nscript:window.hacked=1", f"{HOSTILE} shared words of both texts {ODD}")],
    [("no-text", "data:text/html,<script>window.hacked=1</script>", ""), ("no-text-2", "http://[broken", "")],
]  # fmt: skip


RISKY = [
    {"doc_id": doc, "duplicate_of": of, "judgement": None, "stratum": "shorter", "risks": "shorter close",
     "resemblance": 0.9, "lost": 0.025, "tokens": 12, "kept_tokens": 10, "source": "pages.xml", "record": 1,
     "url": None, "kept_source": "pages.xml", "kept_record": 2, "kept_url": None}
    for doc, of in (("a", "b"), ("longer", "long"), ("</script>", f"{HOSTILE}{ODD}"))
]  # fmt: skip
"""Removals to be judged."""


class Watched:
    """A page and its faults: console messages, errors, dialogs, and requests for anything but files."""

    def __init__(self, browser: Browser, **context: Any) -> None:  # noqa: ANN401 - Playwright's options
        self.context = browser.new_context(**context)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.faults: list[str] = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        self.page.on("request", self._ask)

    def _ask(self, asked: Request) -> None:
        if not asked.url.startswith("file:") and asked.url != "about:blank":
            self.faults.append(asked.url)

    def open(self, address: str, view: str = "") -> Page:
        """Open a view and wait until it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"{address}#/{view}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page


def labels(page: Page) -> list[str]:
    """Return the first documents of the rows on the screen, from the top."""
    return [text.strip() for text in page.locator("#clusters .rows .c-label a").all_text_contents()]
