"""Which texts are pages or fragments of pages; what only mentions tags stays whole."""

import random
import re
import sysconfig
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading import markup
from nddup.reading.markup import WINDOW, is_page_or_fragment, may_begin_tags
from nddup.reading.records import Record, record_text

FRAGMENTS = [
    "<!DOCTYPE html><x>",
    "\ufeff<!-- a -->\n<html><pre>Vec<T>",
    "<?xml version='1.0'?><html>a",
    "<p>How should I <em>elicit</em>",
    "one<br>two",
    "text<br/>text",
    "a line of a post " * 20 + "that ends<br>",
    '<A HREF="x">a</A>',
    "<b>bold</b> and plain words after it",
    "Hello,<br><br>I have a <b>question</b> about x.<br>Thanks",
    "Some words, then <p>a paragraph</p><p>and another</p>",
    "<ul><li>a<li>b</ul>",
    "<td nowrap>a<td>b",
    "<title>t</title><body>words",
    "<!-- c --><p>a</p>",
    "<style>p{color:red}</style><p>words of a mail, more than its style has</p>",
    "<p>Use <code>Vec&lt;T&gt;</code></p>",
    "<div>" + "words " * WINDOW + "</div>",
]
PLAIN = [
    "",
    "if a < b and c > d",
    "if a <b and c> d",
    "<info@example.org>",
    "mail <info@example.org> now",
    "<path> is the name of a file",
    "== Heading == [[link]] <ref>note</ref>",
    "Where do I put the <script> tag on my site? word word",
    "<script> goes to the head",
    "<template>\n  <div class=card></div>\n</template>\n<script>\n" + "word " * 50 + "\n</script>\n",
    "use <br> to break lines",
    "<br> is a line break.",
    "<p> is the tag of a paragraph, use it well",
    "<b> is a tag that makes bold",
    "put <b> and </b> around it",
    "Write `<b>x</b>` for bold, as in the example of the manual.",
    "SMITH CO <I> NET says <SMC> earns",
    "Vec<T> and Map<String, List<I>>",
    "for (i = 0; i < n; i++) { a<b>c; }",
    'html = "<div><b>" + x + "</b></div>"',
    "#include <stdio.h>",
    "a text with <!-- a comment that does not end <p>a</p>",
    "<?php echo 1; ?>",
    "<svg><path d=''/></svg>",
    "<r><a>x</a></r>",
    "Press <kbd> now",
]
INLINE = ["<b>{}</b>", "<i>{}</i>", "<a href='x'>{}</a>", "<em>{}</em>", "<span class=c>{}</span>", "<code>{}</code>"]
OUTER = [
    "<p>{}</p>",
    "<p>{}",
    "<div class=x>{}</div>",
    "{}<br>",
    "<ul><li>{}</ul>",
    "<h2>{}</h2>",
    "<blockquote>{}</blockquote>",
]


@pytest.mark.parametrize("text", FRAGMENTS)
def test_pages_and_fragments(text: str) -> None:
    """A page by its start, an element at the start, and tags throughout that are closed show markup."""
    assert is_page_or_fragment(text)


@pytest.mark.parametrize("text", PLAIN)
def test_texts_that_mention_tags(text: str) -> None:
    """Mentioned tags, tickers, addresses, generics, quotations and code are no markup."""
    assert not is_page_or_fragment(text)


def made_fragment(choose: random.Random) -> str:
    """Make a fragment of one to five blocks of up to forty words, some of them in inline elements."""
    blocks = []
    for _ in range(choose.randint(1, 5)):
        words = ["".join(choose.choices("abcdefghij", k=6)) for _ in range(choose.randint(1, 40))]
        words = [choose.choice(INLINE).format(word) if choose.randrange(8) == 0 else word for word in words]
        blocks.append(choose.choice(OUTER).format(" ".join(words)))
    return choose.choice(("", "\n")).join(blocks)


def test_a_thousand_fragments_are_stripped() -> None:
    """Of 1,000 made fragments every one is stripped: no tag is left, and no word is lost."""
    choose = random.Random(1)  # noqa: S311 - repeatable
    for _ in range(1_000):
        page = made_fragment(choose)
        text = record_text(Record(None, None, (page,), None))

        shown = re.sub(r"<[^>]*>", "", re.sub(r"</?(?:p|div|br|ul|li|h2|blockquote)\b[^>]*>", " ", page))

        assert text.split() == shown.split(), page


def test_a_thousand_source_files_lose_nothing() -> None:
    """Of 1,000 source files of Python's library and of packages none is taken for a page."""
    places = sysconfig.get_paths()
    folders = [Path(places["purelib"]) / name for name in ("numpy", "pyarrow", "duckdb", "lxml", "pydantic", "yaml")]
    files = (file for folder in (Path(places["stdlib"]), *folders) for file in sorted(folder.rglob("*.py")))
    taken = []
    for file in islice((file for file in files if "site-packages" not in file.parts or file in folders), 1_000):
        text = file.read_text("utf-8", "replace")
        if record_text(Record(None, None, (text,), None)) != text:
            taken.append(file)

    assert taken == []


NAMES = f"{markup._VOID} {markup._OPTIONAL} {markup._CLOSED}".split()  # noqa: SLF001
PIECES = [
    "<",
    "</",
    "<!--",
    "-->",
    "<!doctype html>",
    "<?xml",
    "<p",
    ">",
    "/>",
    " ",
    "\x1c",
    "\xa0",
    "\u017f",
    "\u212a",
    "T",
    "1",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(NAMES), st.just("mar\u212a"), st.just("\u017fpan"))))
def test_where_no_tag_may_begin_there_is_none(pieces: list[str]) -> None:
    """The look at three bytes leaves out no page and no tag, nor one in letters that the rules take for others."""
    text = "".join(pieces)
    data = np.frombuffer(text.encode(), np.uint8)

    if not may_begin_tags(data, np.flatnonzero(data == ord("<"))).any():
        assert not is_page_or_fragment(text)
        assert markup._ANY_TAG.search(text) is None  # noqa: SLF001


@pytest.mark.parametrize("end", [">", "/>", " >", "\n x=1>", "\xa0nowrap>"])
def test_every_tag_may_begin(end: str) -> None:
    for name in NAMES:
        for tag in (f"<{name}{end}", f"</{name.upper()}{end}"):
            data = np.frombuffer(tag.encode(), np.uint8)
            assert may_begin_tags(data, np.array([0])).all(), tag
