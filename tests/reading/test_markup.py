"""The text of a page; no page can hang or kill the process."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html as lxml_html

from nddup.reading import markup
from nddup.reading.markup import BLOCK, main_text, read_unknown, strip_markup
from tests.places import SHARED

PIECES = ["<", ">", "/", "p", "script", "!--", "a=", " ", "\0", "\ud800", "&#"]


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("", []),
        ("plain & text", ["plain", "text"]),
        ("<title>no</title><body>one<p>two</p></body>", ["one", "two"]),
        ("<script>a</script><style>b</style><noscript>c</noscript><template>d</template>e", ["e"]),
        ("<p>caf&eacute; &#1103;</p><!-- no --><p>x</p>", ["café", "я", "x"]),
        ("<p>one\0two", ["onetwo"]),
        ("a\ud800b", ["a", "b"]),
        ("<p>one<p>two<table><td>3", ["one", "two", "3"]),
        ("<frameset><frame src=x></frameset>", []),
    ],
)
def test_text_of_the_body(page: str, words: list[str]) -> None:
    """The text is the text nodes of the body without hidden elements; broken pages are repaired as a browser does."""
    assert tokens(strip_markup(page)) == words


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<b>a</b>bc", "abc"),
        ("a<wbr>b<!-- c -->c", "abc"),
        ("H<sub>2</sub>O", "H2O"),
        ("<span>d</span>rop <a href=x>cap</a>s", "drop caps"),
        ("<custom-tag>a</custom-tag>b", "ab"),
        ("a<br>b<BR/>c", "a b c"),
        ("<p>a<p>b<div>c</div>d", "a b c d"),
        ("<ul><li>a<li>b</ul>c", "a b c"),
        ("<table><tr><td>a<td>b<tr><th>c</table>d", "a b c d"),
        ("<select><option>a<option>b</select>c", "a b c"),
        ("a<button>b</button>c", "a b c"),
        ("<dl><dt>a<dd>b</dl>", "a b"),
        ("<pre>a\nb</pre>c", "a b c"),
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "1 2"),
        ("<math><msup><mi>x</mi><mn>2</mn></msup></math>", "x 2"),
        ("<math><mtable><mtr><mtd>1</mtd><mtd>2</mtd></mtr></mtable></math>", "1 2"),
        ("<svg><text>a</text><text>b</text><title>c</title><desc>d</desc></svg>", "a b c d"),
        ("<svg><text>a<tspan x=1 y='2'>b</tspan><tspan fill=red>c</tspan><tspan dy='1em'>d</tspan></text>", "a bc d"),
        ("<ruby>x<rp>(</rp><rt>y</rt></ruby>", "x ( y"),
        ("a<script>x</script>b<style>y</style>c", "abc"),
        ("a<img src=x alt='<p>'>b", "ab"),
    ],
)
def test_blocks_divide_words_and_inline_elements_do_not(page: str, text: str) -> None:
    """Words go on through inline elements and comments and end at blocks, as in a browser's innerText, also flat."""
    assert " ".join(strip_markup(page).split()) == text
    assert "alt" in page or " ".join(markup._strip_flat(page.encode()).split()) == text  # noqa: SLF001


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a<template>x<template>x</template>x</template>b", "ab"),
        ("a<template shadowrootmode=open>b<slot>c</slot></template>d", "a bc d"),
        ("<template class='x>y' SHADOWROOTMODE = 'Closed'>b</template>d", "b d"),
        ("<template shadowroot=open>b<template>x</template>c</template>d", "bc d"),
        ("<template shadowrootmode=open>b<template shadowrootmode=open>c</template>d</template>", "b c d"),
        ("<template shadowrootmode=none>x</template>d", "d"),
        ("<template data-shadowrootmode=open>x</template>d", "d"),
        ("<!--<template shadowrootmode=open>--><template>x</template>d", "d"),
        ("<template><p shadowrootmode=open>x</template>d", "d"),
    ],
)
def test_shadow_roots_are_text_and_templates_are_not(page: str, text: str) -> None:
    """As browsers show them, apart from the text beside them; the flat reading agrees."""
    assert " ".join(strip_markup(page).split()) == text
    assert " ".join(markup._strip_flat(markup._open_shadows(page.encode())).split()) == text  # noqa: SLF001


def test_character_data_of_xhtml_is_text() -> None:
    """In HTML it is a comment; in a script it stays hidden, and what is not ended goes on to the end."""
    page = "<html><body><p><![CDATA[if a < b & c]]></p><script>//<![CDATA[\n'<p>'\n//]]></script>d<![CDATA[ e</body>"

    assert strip_markup(f'<?xml version="1.0"?>{page}').split() == ["if", "a", "<", "b", "&", "c", "d", "e</body>"]
    assert strip_markup(page).split() == ["d"]


@pytest.mark.parametrize("name", ["script", "title", "style", "textarea", "noscript", "iframe"])
def test_elements_of_xhtml_may_end_with_their_tag(name: str) -> None:
    """After `<script src="a"/>` an XHTML page goes on; in HTML it is an open element, which hides what follows."""
    page = f'<html><head><{name} id="a" /></head><body><p>one <b>two</b></body></html>'
    root = page.replace("<html", "<!DOCTYPE html>\n<html lang='en' xmlns='http://www.w3.org/1999/xhtml'")
    assert strip_markup(f'<?xml version="1.0"?>\n{page}').split() == ["one", "two"]
    assert strip_markup(root).split() == main_text(root).split() == ["one", "two"]  # the declaration may be missing
    assert strip_markup(page).split() != ["one", "two"]


@pytest.mark.parametrize("name", ["dialog", "hr", "legend", "mn", "rt", "search", "summary", "xmp", "span", "custom-x"])
def test_the_main_text_has_the_words_of_the_page(name: str) -> None:
    """A word ends at the same elements in both: none is joined to the one behind a block."""
    article = "<p>" + "some words of an article, which are many. " * 20 + f"</p><p>one<{name}>two</{name}>three</p>"
    page = f"<html><body><article>{article}</article></body></html>"

    assert main_text(page).split() == strip_markup(page).split()


@pytest.mark.parametrize(
    "character", ["三", "あ", "한", "ก", "—", "…", "ａ", "я", "😀", "&#19977;", "&mdash;", " 三\n"]
)
def test_a_text_of_one_character_is_main_text(character: str) -> None:
    """Between two tags one character is as much of the text as several: of `<ruby>漢<rt>` the word itself."""
    article = "<p>" + "some words of an article, which are many. " * 20 + f"</p><p>one<b>{character}</b>two</p>"
    page = f"<html><body><article>{article}<ruby>{character}<rt>x</rt></ruby></article></body></html>"

    assert main_text(page).split() == strip_markup(page).split()


def test_text_nodes_are_kept_as_they_are() -> None:
    """Blanks of text nodes are neither stripped nor added; a block adds a line feed before each of its tags."""
    assert strip_markup("<p>one<b> two</b></p>") == "one two\n"


def test_bytes_equal_text() -> None:
    """UTF-8 bytes give the same text as the decoded page."""
    page = "<p>Привет <b>мир</b>"

    assert strip_markup(page.encode()) == strip_markup(page)


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 1_000_000 + "word",
        "<div>" * 100_000 + "word" + "</div>" * 100_000,
        "<b>" * 1_000_000 + "word",
        "".join(f"<font color={i}>" for i in range(5_000)) + "<p>word" * 5_000,
        "<" * 1_000_000 + " word",
        "<a " * 300_000 + "> word",
        "<ul><li>" * 50_000 + "word",
        "<!--" * 100_000 + "--> word",
        "<svg>" * 50_000 + "word",
    ],
    ids=["div", "closed-div", "b", "font", "less-than", "attributes", "lists", "comments", "svg"],
)
def test_hostile_nesting_ends(page: str) -> None:
    """Pages that take quadratic time or memory in a browser's algorithm are read flat."""
    started = time.process_time()

    text = strip_markup(page)

    assert "word" in text
    assert time.process_time() - started < 10


def test_flat_reading_gives_the_same_words() -> None:
    """The flat reading for hostile pages agrees with the parser on an ordinary page."""
    page = "<head><title>no</title></head><body><p>a<b>b</b>&amp;<script>x</script><!-- y -->c</p></body>"

    assert tokens(markup._strip_flat(page.encode())) == tokens(strip_markup(page))  # noqa: SLF001


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_never_raises(page: str) -> None:
    """Any text gives text without lone surrogates."""
    strip_markup(page).encode()
    strip_markup(page.encode("utf-8", "surrogatepass"))
    read_unknown(page)


@pytest.mark.shared
def test_agrees_with_lxml_on_real_pages() -> None:
    """lxml, used as the measuring rule says, gives the same words on nearly every page."""
    parquet = pytest.importorskip("pyarrow.parquet")
    pages = parquet.read_table(SHARED / "debdocs-dev" / "docs.parquet", columns=["html", "charset"]).to_pylist()[::100]
    differing = 0
    for page in pages:
        text = page["html"].decode(page["charset"] or "utf-8", "replace")
        tree: Any = lxml_html.document_fromstring(text.encode(), parser=lxml_html.HTMLParser(encoding="utf-8"))
        body = tree.body
        for hidden in list(body.iter("script", "style", "noscript", "template")):
            hidden.drop_tree()
        for block in body.iter(*BLOCK):
            block.text, block.tail = f"\n{block.text or ''}", f"\n{block.tail or ''}"
        differing += tokens("".join(body.itertext())) != tokens(strip_markup(text))

    assert differing <= len(pages) // 20


def test_the_source_of_a_formula_is_no_text() -> None:
    """TeX beside a formula, as KaTeX and wikis write it; an element of that name outside a formula is text."""
    tex = '<annotation encoding="application/x-tex">\\frac{1}{2} &lt; x</annotation>'
    other = '<annotation-xml encoding="MathML-Content"><apply><ci>hidden</ci></apply></annotation-xml>'
    page = f"<p>a <math><semantics><mrow><mi>x</mi><mo>=</mo><mn>1</mn></mrow>{tex}{other}</semantics></math> b</p>"

    assert strip_markup(page).split() == ["a", "x", "=", "1", "b"]
    assert strip_markup("<p>an <annotation>of</annotation> words").split() == ["an", "of", "words"]


def test_a_page_of_frames_has_the_text_beside_them() -> None:
    """It has no body; whatever stands in <noframes>, its markup is removed once."""
    frames = (
        "<html><head><title>t</title></head><frameset cols=1,2><frame src=a><noframes>{}</noframes></frameset></html>"
    )

    assert strip_markup(frames.format("<body><p>one <b>tw</b>o &amp; <script>x</script></body>")).split() == [
        "one",
        "two",
        "&",
    ]
    assert strip_markup(frames.replace("<noframes>{}</noframes>", "")) == ""
    assert strip_markup("<frameset><noframes>" * 20_000 + "words").endswith("words")


ITEM = "<li>{}</li>"
ARTICLE = "<p>A paragraph of the article.</p>"


@pytest.mark.parametrize("way", ["<body>{}</body>", "<body><article><h1>T</h1>{}</article></body>", "<body><div>{}"])
def test_a_list_of_texts_is_main_text(way: str) -> None:
    """A list high in a page is a menu only if it has as many links as items, however it is spelled and nested."""
    texts = "".join(ITEM.format(f"item{number}") for number in range(4))
    links = "".join(ITEM.format(f"<a href='/{number}'>link{number}</a>") for number in range(4))
    inner = f"<UL class=x>{texts}<li>more<ul>{ITEM.format('inside')}</ul></li></UL>"

    found = main_text(way.format(f"<ul>{links}</ul>{inner}{ARTICLE}")).split()

    assert {"item0", "item3", "more", "inside", "article."} <= set(found)
    assert not [word for word in found if word.startswith("link")]
    assert "item0" not in main_text(way.format(f"<nav><ul>{texts}</ul></nav>{ARTICLE}"))


def test_odd_lists_change_nothing_else() -> None:
    """Ends without a start, and lists without an end, as pages have them."""
    for odd in ("</ul>", "<ul>", "<ul><li>a</ul></ul>", "<ul/>", "<!-- <ul> -->"):
        assert "article." in main_text(f"<body>{odd}{ARTICLE}</body>")


def test_code_points_that_are_no_characters_stay_in_main_text() -> None:
    """The mark that keeps lone characters is one that the page has not."""
    assert main_text(f"<body><p>a\ufdd0b <b>三</b> c</p>{ARTICLE}</body>").startswith("a\ufdd0b 三 c")
