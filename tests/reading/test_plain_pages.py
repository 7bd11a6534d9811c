"""Pages read without a tree: the text of the parser, to the byte, or None."""

import html.entities

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nddup.reading.pages.html_elements import KINDS, kind_of, pack
from nddup.reading.pages.html_references import character_of
from nddup.reading.pages.markup import parse_page, strip_markup
from nddup.reading.pages.open_elements import MAX_OPEN
from nddup.reading.pages.plain_pages import text_of_plain_page
from tests.places import SHARED

_NAMES = """
html head body title meta link script style noscript br hr img input p div ul ol li dl dt dd h1 h2 pre form b i a font
table tbody thead tr td th caption colgroup col button iframe svg path g span o:p blockquote figcaption center textarea
select gcaption abcdefghijk
"""
_TEXTS = (
    "x|  |\n| y z|&amp;|&nbsp;|&#65;|&#xe9;|&copy|& |&bogus;|<|< a|>|é|<!-- c -->|<!-->|<!--a--!>|<![CDATA[x]]>|\r\n|\r"
    "|&#10;|&#32;|&Tab;|&#151;|&#0;|&#x1F600;|</>|</ a>|--!>|&rarr;|&lang;|&NewLine;|<!doctype html>|<?xml?>|\f|\0"
)
_REFERENCES = "&not1|&AT|&frac1|&frac12x|&sup1|&y|&ltx;|&#151|&amp|&nbsp|&COPYX|&acute|&amp;lt;"
_PARTS = (
    "<tr>|<td>|</td>|</tr>| |\n|<th>|x|<tbody>|</tbody>|<col>|<colgroup>|</colgroup>|<caption>|</caption>|<p>|<b>"
    "|<script>a</script>|<!-- c -->|</p>|</b>|<table>|</table>|<form>|<thead>|<a>|</a>|<style></style>"
)
NAMES, TEXTS, PARTS = _NAMES.split(), f"{_TEXTS}|{_REFERENCES}".split("|"), _PARTS.split("|")
ATTRIBUTES = ["", "", " a", " a=b", " a='>'", ' a="</p>"', " a=b/", " /", "/", " =x", ' a="x"b', " a = b", "\n"]

TAGS = st.builds("<{}{}>".format, st.sampled_from(NAMES), st.sampled_from(ATTRIBUTES))
END_TAGS = st.builds("</{}>".format, st.sampled_from(NAMES))
SOUP = st.lists(st.one_of(TAGS, END_TAGS, st.sampled_from(TEXTS))).map("".join)
TABLES = st.lists(st.sampled_from(PARTS)).map(lambda parts: f"<table>{''.join(parts)}</table>x")


def within(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw parts one after another, most of them in an element."""
    element = st.builds("<{0}{1}>{2}</{0}>".format, st.sampled_from(NAMES), st.sampled_from(ATTRIBUTES), inner)
    return st.lists(st.one_of(element, element, inner, st.sampled_from(TEXTS)), max_size=4).map("".join)


NESTED = st.recursive(st.sampled_from(["x", " ", "", "ab c"]), within, max_leaves=12)
ENDS = st.sampled_from(["", "</body>", "</body>\n</html>\n", "</body><!-- c --> ", "</body>x"])
PAGES = st.builds("<html><head><title>t</title></head> <body>{}{}".format, NESTED | TABLES, ENDS)

PLAIN = [
    ("<p>one<b>two</b> &amp; <script>x</script>three", "one two  &  three"),
    ("<!doctype html>\n<html>\n<head><title>t</title>\n</head>\n<body>\na<br>b\n</body>\n</html>\n", "\na b\n\n\n"),
    ("<table> <tr> <td>x</table> y", "    x  y"),
    ("<ul><li>a<li>b<p>c</ul>d", "a b c d"),
    ("<pre>\r\nx\r\ny</pre>z", "x\ny z"),
    ("<svg><title>t</title><path d='' /></svg>x", "t x"),
    ("<iframe src=a>\n</iframe>", "\n"),
    ("a < b &amp;&lt; c", "a < b &< c"),
    ("&copy 2020 AT&T &copyright &notit &nbspx&amp&lt", "© 2020 AT&T ©right ¬it \xa0x&<"),
    ("a &#151; b &#x93;c&#129;&#148;", "a — b “c\x81”"),
    ("", ""),
]
NOT_PLAIN = [
    "a</b>b",
    "<b>a<p>b</b>c</p>d",
    "<table>a<tr><td>b</table>",
    "<p>a<table><tr><td>b</table>c",
    "<textarea>a</textarea>",
    "<body>a</body>b",
    "<!-- a",
    "<p a='",
    "<script><!-- <script> --></script>",
    "<div>" * (MAX_OPEN + 1),
    "a\0b",
]


@pytest.mark.parametrize(("page", "text"), PLAIN)
def test_the_text_of_plain_pages(page: str, text: str) -> None:
    """The text of a plain page is that found by hand and that of the parser."""
    assert text_of_plain_page(page.encode()) == text.encode() == parse_page(page.encode()).encode()


@pytest.mark.parametrize("page", NOT_PLAIN)
def test_what_is_not_plain(page: str) -> None:
    """A page is not plain if the parser does more than open and close elements."""
    assert text_of_plain_page(page.encode()) is None


@given(st.one_of(PAGES, SOUP, TABLES, NESTED))
@example("<blockquote>a</ockquote>b</blockquote>c")
@example("<div><a>b</div>c</a>")
@example("<b><b><b><b>a</b></b></b></b>b")
@example("<form><div></form>a</div>")
@example("<button><p>a</button>b</p>c")
def test_the_text_is_the_parsers(page: str) -> None:
    """The text of any page is that of the parser, or None."""
    assert text_of_plain_page(page.encode()) in (None, parse_page(page.encode()).encode())


@given(st.binary())
@example(b"<p>\xe9<b>x")
def test_any_bytes(page: bytes) -> None:
    """Bytes that are not UTF-8 also give the text of the parser, or None."""
    found = text_of_plain_page(page)

    assert strip_markup(page) == parse_page(page)
    assert found is None or found.decode("utf-8", "replace") == parse_page(page)


def test_nearly_all_real_pages_are_plain() -> None:
    """Nearly all pages of Apache, Boost and LLVM, in ten languages, are plain, with the text of the parser."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = SHARED / "debdocs-dev" / "docs.parquet"
    if not path.exists():
        pytest.skip("the shared data are not here")
    pages = parquet.read_table(path, columns=["html", "charset"]).take(list(range(0, 10_000, 20))).to_pylist()

    found = 0
    for page in pages:
        data = page["html"].decode(page["charset"] or "utf-8", "replace").encode()
        text = text_of_plain_page(data)
        assert text in (None, parse_page(data).encode())
        found += text is not None

    assert found >= 0.98 * len(pages)


def test_elements_and_references_are_found() -> None:
    """Every kind of element has a name; references are those of the standard, as far as they fit."""
    names = (
        "o dialog html head body meta script title br hr nav div ul h1 p li dd pre form b a table tr td tbody caption "
        "col colgroup button iframe svg path"
    )
    assert {kind_of(pack(name)) for name in names.split()} == set(range(KINDS))
    for name, character in html.entities.html5.items():
        if name.endswith(";") and len(name) < 10 and len(character) == 1 and character > " ":
            assert character_of(pack(name[:-1])) == ord(character)
    assert character_of(pack("bogus")) == 0
