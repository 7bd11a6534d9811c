"""Inline markup in XML fields divides no word; other elements do; comments and instructions never do."""

import pytest

from nddup.reading.detect import read_head
from nddup.reading.records import Record, parse_record, record_text
from tests.reading.record_files import records_of

HEAD = read_head(b"<r><doc><id>1</id><text>a</text></doc></r>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("H<sub>2</sub>O and <hi rend='x'>d</hi>rop", "H2O and drop"),
        ("a<!-- c -->b<?p?>c<![CDATA[d]]>e", "abcde"),
        ("<title>a</title><para>b</para>c", "a b c"),
        ("<p>a <italic>b</italic>c</p><p>d<x:bold xmlns:x='u'>e</x:bold></p>f<br/>g", "a bc de f g"),
        ("<row a='1'/>b<I>c</I>d", "bcd"),
        ("<s>a word</s><s>and more</s><data>1</data><data>2</data><q>w</q><q>me</q>", "a word and more 1 2 w me"),
        (
            "<line><charParams l='1'>a</charParams><charParams>b</charParams></line><line><c>c</c><c>d</c></line>",
            "ab cd",
        ),
    ],
)
def test_text_of_elements(text: str, expected: str) -> None:
    """Words go on through inline elements of HTML, JATS, TEI and DocBook, whatever the prefix and case."""
    record = parse_record(f"<doc><id>1</id><text>{text}</text>".encode(), HEAD, is_last=False)

    assert isinstance(record, Record)
    assert " ".join(record_text(record).split()) == expected


def test_an_edition_of_tei_gives_each_word_once() -> None:
    """Of a misprint and its correction the correction; words go on through expansions, initials and lines."""
    words = (
        '<hi rend="initial">T</hi>he exam<lb break="no"/>ple, d<ex>omi</ex>n<ex>u</ex>s, a<lb/>line,'
        " <choice><sic>foxx</sic><corr>fox</corr></choice> <choice><abbr>Mr</abbr><expan>Mister</expan></choice>,"
        " a <sic>lone</sic> <choice><orig>y</orig><unclear>x</unclear></choice>"
    )
    data = f"<TEI><text><body><p>{words}</p></body></text></TEI>".encode()

    (found,) = records_of(data)

    assert " ".join(record_text(found).split()) == "The example, dominus, a line, fox Mister, a lone yx"


def test_a_formula_of_an_article_is_read_once() -> None:
    """Its TeX, with a preamble for each, is left out where it stands beside MathML, and read where it stands alone."""
    tex = "<tex-math>\\documentclass{minimal} $$x$$</tex-math>"
    math = '<m:math xmlns:m="m"><m:semantics><m:mi>x</m:mi><m:annotation>\\tex</m:annotation></m:semantics></m:math>'
    front = '<front><article-meta><article-id pub-id-type="doi">1</article-id></article-meta></front>'
    body = f"<p>so <alternatives>{tex}{math}</alternatives> and <alternatives>{tex}<graphic/></alternatives></p>"

    (found,) = records_of(f"<article>{front}<body>{body}</body></article>".encode())

    assert " ".join(record_text(found).split()) == "so x and \\documentclass{minimal} $$x$$"
