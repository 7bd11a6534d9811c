"""Malformed input is read alike by every Python: before 3.11.5 a possessive group may end after its last match."""

import re

import pytest

from nddup.reading.csv_rows import separator_of
from nddup.reading.markup import _TEMPLATE
from nddup.reading.xml_records import ATTRIBUTES, SKIPPED
from tests.places import ROOT

LOOKED_AT = {"csv_rows.py", "markup.py", "xml_records.py"}
TAG = re.compile(f"<a{ATTRIBUTES}>")


@pytest.mark.parametrize("text", ["<a '><a\">'/<a'", "<a  '>'\"><a==", '<a "\'"">b>/>>', '<a b="c>', "<a b='/>"])
def test_an_attribute_without_its_end_is_no_start_tag(text: str) -> None:
    """A tag with an open quote does not match: skipping the quote would end the tag inside its value."""
    assert TAG.match(text) is None


@pytest.mark.parametrize("text", [b"<template '><b \">", b"<template  '>'\"><a==", b'<template a="b>'])
def test_a_template_without_its_end_is_no_start_tag(text: bytes) -> None:
    """As of an attribute: a tag of a shadow root with an open quote does not match."""
    assert _TEMPLATE.match(text) is None


@pytest.mark.parametrize(
    ("text", "length"),
    [("<a>", 3), ("<a/>", 4), ('<a b="/>" c=\'">\'/>d>', 18), ("<a b=''>\">", 8), ("<a / >", 6)],
)
def test_a_start_tag_ends_outside_of_quotes(text: str, length: int) -> None:
    """A start tag ends at a > outside quotes, with or without a slash before it."""
    found = TAG.match(text)

    assert found is not None
    assert found.end() == length


@pytest.mark.parametrize(
    "text", ['<!DOCTYPE]">a->', "<!DOCTYPE a [<?]>'", "<!DOCTYPE a <'>?a", "<!DOCTYPE a [<!-- ]>", "<!DOCTYPE a ['']]>"]
)
def test_a_type_without_its_end_is_not_skipped(text: str) -> None:
    """No open quote, comment or instruction of a DOCTYPE is skipped."""
    assert re.compile(SKIPPED, re.DOTALL).match(text) is None


@pytest.mark.parametrize("text", ["a,b\n1, 2,\n", 'a,b\n , "",\n,', 'a,b\n"c", "d",e\n', "a,b\n1, 2,3\n"])
def test_a_field_without_a_blank_makes_no_wide_separator(text: str) -> None:
    """One field without a blank before it, even an empty last one, prevents the wide separator."""
    assert separator_of(text, ",") == ","


def test_no_other_module_has_one() -> None:
    """Only these modules use possessive groups: one that can fail in its middle depends on the version of Python."""
    group = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")

    assert {path.name for path in (ROOT / "nddup").rglob("*.py") if group.search(path.read_text())} == LOOKED_AT
