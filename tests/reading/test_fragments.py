"""Texts of unknown kind: pages are read as pages, of others each tag is judged alone, and nothing else changes."""

import html as html_entities
import random
import re
import sysconfig
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading import markup
from nddup.reading.markup import NAMES, begins_as_page, may_begin_markup, may_hold_markup, read_unknown
from nddup.reading.records import Record, read_text, record_text
from nddup.sketching.tokens import tokenise

STRIPPED = {
    "<!DOCTYPE html><x>": "",
    "\ufeff<!-- a -->\n<html><pre>Vec<T>": "Vec",
    "<?xml version='1.0'?><html>a": "a",
    "<head><script>x</script></head><body class=c>a": "a",
    "<p>How should I <em>elicit</em>": "How should I elicit",
    "one<br>two": "one two",
    "text<br/>text": "text text",
    "one <br> two\n<p>\nthree</p>": "one two three",
    '<A HREF="x">a</A>b': "ab",
    "Hello,<br><br>I have a <b>question</b> about x.<br>Thanks": "Hello, I have a question about x. Thanks",
    "<ul><li>a<li>b</ul>": "a b",
    "<td nowrap>a<td>b": "a b",
    "<title>t</title>words": "t words",
    "<!-- c --><p>a</p><!---->": "a",
    "<p>Use <code>Vec&lt;T&gt;</code></p>": "Use Vec T",
    "caf&eacute; &#1103; AT&amp;T &unknown; a&b;": "café я AT T unknown a b",
    "Dr. <s>Eric Young</s>. He": "Dr Eric Young He",
    "he said <i>so</i>.": "he said so",
    "<jats:sec><jats:title>Aim</jats:title><jats:p>H<jats:sub>2</jats:sub>O</jats:p></jats:sec>": "Aim H2O",
    "<jats:sec>\n <jats:p>the <mml:math><mml:mn>1</mml:mn><mml:mi>x</mml:mi></mml:math>": "the 1 x",
    '<p>one<o:p></o:p></p>in <st1:city w:st="on">Paris</st1:City>now <O:P />': "one in Paris now",
}
PLAIN = [
    "",
    "if a < b and c > d",
    "if a <b and c> d",
    "<info@example.org>",
    "mail <info@example.org> now",
    "<path> is the name of a file",
    "cp <source> <target>, or git clone <link>",
    "== Heading == [[link]] <ref>note</ref>",
    "Where do I put the <script> tag on my site? word word",
    "<script> goes to the head",
    "<b> is a tag that makes bold",
    "put <b> and </b> around it",
    "Write `<b>x</b>` for bold, as in the example of the manual.",
    'call it "<div>"',
    "SMITH CO <I> NET says <SMC> earns",
    "Vec<T> and Map<String, List<I>>",
    "the <xs:element> of a schema, std::map<a::b, c>, <std:o:p>, <o: p>",
    "#include <stdio.h>",
    "<div className={name}>",
    "a text with <!-- a comment that does not end <r>a</r>",
    "<?php echo 1; ?>",
    "Press <kbd> now",
    "?a=1&b=2 and &c; of Tom & Jerry",
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
TAGS = [
    "<b>",
    "</b>",
    "<br>",
    "<p>",
    "</div>",
    "<script>",
    "</script>",
    "<title>",
    "<a href='q'>",
    "<!-- q -->",
    "&lt;",
]


def tokens(text: str) -> list[str]:
    """Return the tokens of a record with this text."""
    return tokenise(record_text(Record(None, None, (text,), None)))


@pytest.mark.parametrize(("text", "shown"), STRIPPED.items())
def test_markup_goes(text: str, shown: str) -> None:
    """Of pages, and of texts with tags, what a browser would show stays."""
    assert tokens(text) == tokenise(shown)


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_named_stays(text: str) -> None:
    """Names of tags between blanks or in quotation marks, tickers, addresses, generics and code are no markup."""
    assert record_text(Record(None, None, (text,), None)) == text


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


def test_source_files_lose_tags_at_most() -> None:
    """Of 500 source files of Python's library and of packages hardly any has a tag, and words outside them stay."""
    places = sysconfig.get_paths()
    folders = [Path(places["purelib"]) / name for name in ("numpy", "pyarrow", "duckdb", "lxml", "pydantic", "yaml")]
    files = (file for folder in (Path(places["stdlib"]), *folders) for file in sorted(folder.rglob("*.py")))
    changed = lost = total = 0
    for file in islice((file for file in files if "site-packages" not in file.parts or file in folders), 500):
        text = file.read_text("utf-8", "replace")
        before, after = tokenise(text), tokens(text)
        changed += before != after
        lost += len(before) - len(after)
        total += len(before)
        glued = re.findall(r"\S*<[^<>]*>\S*|\S*&#?\w+;\S*", text)
        marked = Counter(tokenise(" ".join([*glued, *re.findall(r"<[^<>]*>", text)])))
        assert Counter(before) - Counter(after) <= marked, file

    assert changed < 25
    assert lost < total / 250


def texts() -> list[str]:
    """Return licences and pages of the demonstration, READMEs of packages, and fragments."""
    choose = random.Random(3)  # noqa: S311 - repeatable
    folder = Path(sysconfig.get_paths()["purelib"])
    files = [*sorted(folder.glob("*.dist-info/METADATA"))[:20], *sorted(folder.glob("*.dist-info/**/LICENSE*"))[:20]]
    readmes = [file.read_text("utf-8", "replace")[:8_000] for file in files]
    return readmes + [made_fragment(choose) for _ in range(20)]


@pytest.mark.parametrize("added", ["qwertz", *TAGS])
def test_one_word_or_tag_more_changes_nothing_else(added: str) -> None:
    """A word or a tag put between two words of a text adds its own tokens at most, and all others stay as they are."""
    choose = random.Random(5)  # noqa: S311 - repeatable
    may_add = Counter(tokenise(added))
    for text in texts():
        inside = [range(*tag.span()) for tag in re.finditer(r"<[^<>]*>|&[^\s;]*;", text)]
        blanks = [found.start() for found in re.finditer(r"(?<=\w)\s(?=\w)", text)]
        places = [place for place in blanks if not any(place in tag for tag in inside)]
        before = tokens(text)
        for place in choose.sample(places, min(3, len(places))):
            after = tokens(f"{text[:place]} {added} {text[place:]}")

            difference = Counter(after) - Counter(before)
            assert difference <= may_add, (added, text[place - 40 : place + 40])
            assert not Counter(before) - Counter(after), (added, text[place - 40 : place + 40])


@given(st.lists(st.sampled_from(["one", "two", "<b>", "</b>", "<i>x</i>", "<br>", "<p>", "List<I>", "a&amp;b", "\n"])))
def test_a_word_more_changes_nothing_whatever_stands_beside_it(words: list[str]) -> None:
    """At any blank, also beside tags and at both ends of the text."""
    before = tokens(" ".join(words))
    for place in range(len(words) + 1):
        after = tokens(" ".join([*words[:place], "qwertz", *words[place:]]))
        after.remove("qwertz")
        assert after == before


def test_sixty_words_and_more_with_two_tags() -> None:
    """The number of words decides nothing: 60 words with two tags and 61 differ in one token."""
    words = [f"w{i}" for i in range(80)]
    for count in (59, 60, 61, 80):
        assert tokens(f"{words[0]} <b>{words[1]}</b> {' '.join(words[2:count])}") == words[:count]


def test_pages_that_begin_after_other_text_are_counted() -> None:
    """Such a text is read tag by tag, and loses no word; a page that is only named is not counted."""
    page = "<!DOCTYPE html><html><head><script>code</script></head><body><p>words</p></body></html>"
    counts = [read_text(Record(None, None, (text,), None)).inside for text in (page, f"see {page}", "the <html> tag")]

    assert counts == [0, 1, 0]
    assert tokens(f"see {page}") == ["see", "code", "words"]


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
]
PIECES += ["T", "1", "&", "&#", ";", "amp", "x41"]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(NAMES), st.just("mar\u212a"), st.just("\u017fpan"))))
def test_where_no_markup_may_begin_there_is_none(pieces: list[str]) -> None:
    """The look at a few bytes leaves out nothing, nor a tag in letters that the rules take for others."""
    text = "".join(pieces)

    if not may_begin_markup(np.frombuffer(text.encode(), np.uint8)).size:
        assert not may_hold_markup(text)
    if not may_hold_markup(text):
        assert read_unknown(text) == (text, False, False)


@pytest.mark.parametrize("end", [">", "/>", " >", "\n x=1>", "\xa0nowrap>"])
def test_every_tag_may_begin(end: str) -> None:
    for name in NAMES:
        for tag in (f"<{name}{end}", f"</{name.upper()}{end}"):
            assert may_begin_markup(np.frombuffer(tag.encode(), np.uint8)).tolist() == [0], tag


@given(st.text(alphabet="&#xX;0123456789abgtlmp"))
def test_references_are_those_of_html(text: str) -> None:
    """What is resolved is resolved as the standard says."""
    for found in markup._REFERENCE.finditer(text):  # noqa: SLF001
        assert read_unknown(found[0]).text in (html_entities.unescape(found[0]), found[0])


def test_the_beginning_of_a_page() -> None:
    assert begins_as_page("\n<!-- a --><HTML lang=en>")
    assert not begins_as_page("a <html>")
    assert not begins_as_page("<htmlx>")
