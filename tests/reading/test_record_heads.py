"""The head of a file shows where its records begin, how they are cut and how they are encoded."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.reading.detect import read_head
from nddup.reading.formats import FormatError, NoRecordsError
from nddup.reading.records import Record, Reject
from tests.reading.record_files import FIXTURES, PIECES, needs_shared, read_all, records_of


@needs_shared
def test_files_of_one_shape_have_one_head() -> None:
    """The head holds nothing of one file only, such as its collection or date."""
    data = (FIXTURES / "romip_prefixed_root.xml").read_bytes()
    other = data.replace(b"2023-06-10", b"2024-01-01").replace(b">ruweb<", b">other<")

    assert read_head(data[:4096]) == read_head(other[:65_536])
    assert hash(read_head(data)) == hash(pickle.loads(pickle.dumps(read_head(other))))  # noqa: S301


@pytest.mark.parametrize(
    ("data", "separator", "found"),
    [
        (b"<s:r xmlns:s='u'><s:doc id='1'><content>a</content></s:doc></s:r>", b"</s:doc>", "@id"),
        (b"<r><document><id>1</id><text>a</text></document ></r>", b"</document >", "id"),
        (b"<posts>\n<row Id='1' Body='a'/>\n<row Id='2' Body='b' />\n</posts>\n", b"/>", "@Id"),
        (b"<rss><channel><item><guid>1</guid><description>a</description></item></channel></rss>",
         b"</item>", "guid|@about|link"),
        (b"<newsitem itemid='1'><title>t</title><text>a</text></newsitem>", b"</newsitem>", "@itemid"),
    ],
)  # fmt: skip
def test_detects_plain_xml(data: bytes, separator: bytes, found: str) -> None:
    """Record, id and content of common shapes are found; the end tag is taken as spelled."""
    head = read_head(data)
    records = records_of(data)

    assert (head.separator, head.format.id) == (separator, found)
    assert records[0].doc_id == "1"
    assert records[0].fields[-1] == "a"


def test_several_shapes_by_paths() -> None:
    """Paths may use children, attributes and predicates, several of them for the content; prefixes do not matter."""
    data = b"""<add xmlns:x="u"><doc><field name="id">d1</field><x:meta href="http://a/1"/>
    <field name="title">T</field><field name="text">one <b>two</b></field></doc></add>"""

    head = read_head(
        data,
        record="doc",
        id="field[@name=id]",
        url="meta/@href",
        content=("field[@name='title']", "field[@name=text]"),
    )
    [record] = read_all(data, head)

    assert isinstance(record, Record)
    assert (record.doc_id, record.url, record.fields) == ("d1", "http://a/1", ("T", "one two"))


def test_namespaces_of_all_ancestors() -> None:
    """A prefix declared between the root and the record is in force inside the record."""
    data = b'<o xmlns="d"><list xmlns:p="u"><record><id>1</id><p:text>a</p:text></record></list></o>'

    assert read_head(data).namespaces == (("", "d"), ("p", "u"))
    assert records_of(data)[0].fields == ("a",)


def test_prolog_does_not_fool() -> None:
    """Record tags in comments, CDATA, instructions and the DOCTYPE before the first record are not records."""
    data = b"""<?xml version="1.0"?><?pi <document>?><!-- <document> --><!DOCTYPE r [<!ENTITY a "<document>">
    <!-- it's ] > -->]><r><head><![CDATA[<document>]]></head><document><id>1</id><text>a</text></document>
    <!-- <document> --> <document><id>2</id><text>b</text></document></r>"""

    assert [record.doc_id for record in records_of(data)] == ["1", "2"]


@pytest.mark.parametrize("codec", ["cp1251", "koi8-r", "utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_of_the_file(codec: str) -> None:
    """The text is right whether the encoding is declared, marked, or recognised by its zero bytes."""
    text = f'<?xml version="1.0" encoding="{codec}"?><r><doc><id>ё</id><text>Привет</text></doc></r>'

    assert records_of(text.encode(codec)) == [Record("ё", None, ("Привет",), None)]


def test_wrong_declaration_of_the_file() -> None:
    """UTF-16 declared in ASCII bytes is UTF-8; the user's charset overrules a declaration."""
    text = '<?xml version="1.0" encoding="{}"?><r><doc><id>1</id><text>Привет</text></doc></r>'

    assert records_of(text.format("utf-16").encode())[0].fields == ("Привет",)
    assert records_of(text.format("koi8-r").encode("cp1251"), charset="win-1251")[0].fields == ("Привет",)


@pytest.mark.parametrize(
    ("data", "settings_", "error", "words"),
    [
        (b"", {}, NoRecordsError, "empty"),
        (b"just text", {}, FormatError, "input.format"),
        (b"<a><b/><c/></a>", {}, FormatError, "input.record, input.id and input.content"),
        (b"<a><doc><x>1</x></doc></a>", {"record": "doc"}, FormatError, "input.content"),
        (b"<a><b/></a>", {"record": "doc"}, NoRecordsError, "input.record"),
        (b"<a/>", {"format": "nope"}, FormatError, "input.format"),
        (b'<?xml version="1.0" encoding="nope"?><a/>', {}, FormatError, "input.charset"),
        (b'{"a": 1}', {}, FormatError, "input.content"),
        (b"<r><doc><id>1</id></doc></r>", {"content": "a[b"}, FormatError, "path"),
        (b'{"id": [1, 2], "text": ["a", "b"], "x": 1}', {}, FormatError, "lists of 2"),
        (b"<ncx><p id='1'><content src='x'/></p><p id='2'/></ncx>", {}, FormatError, "input.record"),
        (b"<opml><body><outline text='a'/></body></opml>", {}, FormatError, "input.record"),
    ],
)
def test_says_what_to_set(data: bytes, settings_: dict[str, str], error: type[Exception], words: str) -> None:
    """A file that cannot be understood raises an error that names the settings to use."""
    with pytest.raises(error, match=words):
        read_head(data, **settings_)


@pytest.mark.parametrize(
    "path", ["", "a//b", "@a/b", "a[2]", "a b", "a|", "html(a", "xml(a)", "html(text(a))", "a/text()"]
)
def test_refuses_bad_paths(path: str) -> None:
    """A path that cannot be parsed is refused."""
    with pytest.raises(FormatError, match="path"):
        read_head(b"<r><doc><id>1</id></doc></r>", record="doc", content=(path or " ",))


@given(data=st.binary(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join))
@settings(deadline=None)
def test_any_head_is_a_head_or_a_format_error(data: bytes) -> None:
    """No head raises anything but the error that says what to set."""
    try:
        head = read_head(data)
    except FormatError:
        return

    assert head.separator


def test_the_first_rows_of_json_lines_may_lack_the_text() -> None:
    """The first row with a text tells its key; the keys of the rows before it count too, and each row is read."""
    rows = b'{"id": "e", "error": 1, "url": "u"}\n{"id": "1", "body": "a"}\n{"id": "2", "body": "b", "text": "c"}\n'

    head = read_head(rows)
    found = read_all(rows)

    assert (head.format.id, head.format.url, head.format.content) == ("id", "url", ("title|subject|headline", "body"))
    assert [one.reason if isinstance(one, Reject) else one.fields for one in found] == ["no content", ("a",), ("b",)]
