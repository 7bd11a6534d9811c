"""Records are found as XML finds them, however their ends are spelled: lxml's parse of the whole file is the oracle."""

import io
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from nddup.reading.detect import read_head
from nddup.reading.outcomes import Record, Reject
from nddup.reading.records import record_text
from nddup.reading.streams import Chunk, Expanded, cut_pieces
from nddup.reading.xml_cutting import cut_records
from nddup.scanning.whole_files import read_stream
from tests.reading.record_files import read_all
from tests.samples_by_night import every

TEXTS = st.lists(
    st.sampled_from(
        [
            *("a", "я", " b ", "\n", "&amp;", "&#228;", "&lt;doc&gt;", ">", "/>", "]", "--", "'", '"'),
            *("<![CDATA[</doc>]]>", "<![CDATA[<doc>]]>", "<![CDATA[x]]>", "<![CDATA[<!--]]>", "<![CDATA[ > /> ]]>"),
            *(
                "<!-- </doc> -->",
                "<!-- <doc> -->",
                "<!-- <doc id='0'>x</doc> -->",
                "<!-- <![CDATA[ -->",
                "<!-- ]]> -->",
            ),
            *("<?p </doc>?>", "<?p <doc>?>", "<b/>", "<b>c</b>", "<b c='/>'>d</b>", "<docs>e</docs>", "<b c='>'/>"),
            *("<z:doc xmlns:z='other'>f</z:doc>", "<z:doc xmlns:z='other'/>", "<b><doc>g</doc></b>", "<b><doc/></b>"),
        ]
    ),
    max_size=5,
).map("".join)
ATTRIBUTES = st.sampled_from(["", " a='>'", ' a="/>"', " a='</doc'".replace("<", "&lt;"), "\n b = '&amp;'", " c='d'\t"])
BETWEEN = st.sampled_from(
    ["", "", "\n", " text ", "<!-- <doc>x</doc> -->", "<?p <doc/>?>", "<x/>", "<x>y</x>",
     "<z:doc xmlns:z='other'>f</z:doc>",
     "<![CDATA[</doc><doc>]]>", "</g><g>", "<!-- </doc> -->", "<docs/>"]
)  # fmt: skip


@st.composite
def collections(draw: st.DrawFn) -> str:
    """A well-formed collection of records `doc` in one namespace, or in none, spelled in every way."""
    is_named = draw(st.booleans())
    names = st.sampled_from(["doc", "p:doc", "q:doc"] if is_named else ["doc"])
    declared = " xmlns='u' xmlns:p='u' xmlns:q=\"u\"" if is_named else ""
    records = []
    for number in range(draw(st.integers(1, 6))):
        name, attributes = draw(names), draw(ATTRIBUTES)
        start = f"<{name} id='{number}'{attributes}"
        body = draw(TEXTS)
        end = draw(st.sampled_from(["</%s>", "</%s>", "</%s >", "</%s\n>"])) % name
        empty = draw(st.sampled_from(["/>", " />", f"></{name}>"]))
        rest = draw(st.sampled_from([empty, f">{body}{end}", f">{body}{end}"]))
        records.append(start + rest + draw(BETWEEN))
    prologs = ["", "<?xml version='1.0'?>\n", "<!DOCTYPE r [<!ENTITY e '</doc>'>]>", "<!-- <doc> -->"]
    prolog = draw(st.sampled_from(prologs))
    before = draw(BETWEEN.filter(lambda one: "z:" not in one))  # the first `doc` is the record
    return f"{prolog}<r{declared}><g>{before}{''.join(records)}</g></r>"


def as_lxml_finds(data: bytes) -> list[tuple[str | None, str]]:
    """Return the id and the text of each outermost record."""
    root = etree.fromstring(data, etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False))
    name = etree.QName("u" if root.nsmap else None, "doc")
    found = [one for one in root.iter(name) if not any(above.tag == one.tag for above in one.iterancestors())]
    return [(one.get("id"), "".join("".join(map(str, one.itertext())).split())) for one in found]


def as_read(data: bytes) -> list[object]:
    """Return the id and the text of each record; a reject as it is."""
    head = read_head(data, record="doc", id="@id", content=".")
    stream = Expanded(io.BytesIO(data), "")
    found = [record for record, _ in read_stream(stream, head, len(data) + 10)]
    return [seen(one) for one in found]


def seen(one: Record | Reject) -> object:
    """Return the id and the text of a record without blanks; a reject as it is."""
    return (one.doc_id, "".join(record_text(one, markup="text").split())) if isinstance(one, Record) else one


@given(collections())
@settings(max_examples=150, deadline=None)
def test_the_records_are_those_of_the_whole_file(text: str) -> None:
    """However the records of a well-formed file are spelled, they are those that lxml finds in it."""
    data = text.encode()

    assert as_read(data) == as_lxml_finds(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "cp1251", "iso2022_jp"])
@pytest.mark.parametrize(
    "records",
    [
        "<doc id='0'/><doc id='1'>b</doc><doc id='2'/>",
        "<doc id='0'>a</doc ><doc id='1'>b</doc\n><doc id='2'>c</doc>",
        "<doc id='0'/><doc id='1' a='/>'/><doc id='2' a='>'/>",
        "<doc id='0'><![CDATA[</doc>]]></doc><doc id='1'><doc id='x'>b</doc></doc><!-- </doc><doc> --><doc id='2'/>",
    ],
)
def test_the_encoding_makes_no_difference(records: str, encoding: str) -> None:
    """Also where bytes of a character may look like a tag, records are found as in UTF-8."""
    name = encoding.replace("_", "-").replace("iso2022", "iso-2022")
    start = "" if encoding.startswith("utf-16") else f"<?xml version='1.0' encoding='{name}'?>"

    found = as_read(f"{start}<r>{records}</r>".encode(encoding))

    assert found == as_lxml_finds(f"<r>{records}</r>".encode())


def test_a_chunk_of_many_records_may_be_longer_than_a_record() -> None:
    """Records that end otherwise than the separator are found however far it is; a long one is still a reject."""
    rows = [f"<doc id='{number}'/>" for number in range(200)]
    data = f"<r><doc id='a'>x</doc>{''.join(rows)}<doc id='b'>{'y' * 500}</doc >{''.join(rows)}<doc id='c'>z</doc></r>"
    head = read_head(data.encode(), record="doc", id="@id", content=".")

    found = [record for record, _ in read_stream(Expanded(io.BytesIO(data.encode()), ""), head, 400)]

    names = [one.doc_id if isinstance(one, Record) else one.reason for one in found]
    numbers = [str(number) for number in range(200)]
    assert names == ["a", *numbers, "too large", *numbers, "c"]


@pytest.mark.parametrize(
    ("records", "seen"),
    [
        ("<doc id='0'>a <doc id='1'>b</doc><doc id='2'>c</doc><doc id='3'>d</doc>", ["0", "1", "2", "3"]),
        ("<doc id='0'><a>a <doc id='1'>b</doc><doc id='2'/>", ["malformed", "1", "2"]),
        ("<doc id='0'><a></doc><doc id='1'/><doc id='2'>c</doc>", ["malformed", "1", "2"]),
        ("<doc id='0'><a></doc ><doc id='1'>b</doc><doc id='2'/>", ["malformed", "1", "2"]),
        ("<doc id='0'><![CDATA[a</doc><doc id='1'>b</doc><doc id='2'/>", ["malformed", "1", "2"]),
        ("<doc id='0'>a & b<doc id='x'>\x01</doc>&nbsp;</doc><doc id='1'>b</doc><doc id='2'/>", ["0", "1", "2"]),
        ("<doc id='0'>z</doc><!-- <doc id='x'>a</doc><doc id='1'>b</doc><doc id='2'/>", ["0", "1", "2"]),
        ("<doc id='0'>z</doc><?><doc id='x'>a</doc><doc id='1'>b</doc><doc id='2'/>", ["0", "1", "2"]),
        ("<doc id='0'>z</doc><!--><doc id='x'>a</doc><doc id='1'>b</doc><doc id='2'/>", ["0", "1", "2"]),
        ("<doc id='0' id='0'/><doc id='1'>b</doc><doc id='2'/>", ["malformed", "1", "2"]),
    ],
)
def test_what_is_no_xml_costs_one_record(records: str, seen: list[str]) -> None:
    """A record with an error is a reject, and one without its end if what is in it does not end; others are read."""
    found = read_all(f"<r>{records}<doc id='e'>e</doc></r>".encode(), record="doc", id="@id", content=".")

    assert [one.doc_id if isinstance(one, Record) else one.reason for one in found] == [*seen, "e"]


def test_records_that_hold_the_separator_keep_a_file_whole() -> None:
    """Such a file is not divided among tasks: one could begin inside a record."""
    for body, is_whole in (("a", False), ("<![CDATA[</doc>]]>", True), ("<doc/>", False), ("<doc>b</doc>", True)):
        data = f"<r><doc><text>a</text>{body}</doc><doc/><doc></doc ></r>".encode()

        assert read_head(data, record="doc", content="text").is_indivisible == is_whole


def test_no_record_of_a_file_has_an_end_tag() -> None:
    """Each ends where the next one starts, however many they are, and an empty element by itself."""
    bodies = ["" if number % 10 == 5 else f" id='{number}'><text>t{number}</text>" for number in range(200)]
    records = [f"<doc{body or '/>'}" for body in bodies]
    data = f"<r><doc id='a'><text>a</text></doc>{''.join(records)}".encode()
    head, most = read_head(b"<r><doc id='a'><text>a</text></doc></r>"), 1 << 13

    pieces = cut_pieces(Expanded(io.BytesIO(data), ""), head.separator, max_record=most)
    found = [one.value for one in cut_records(pieces, head, max_record=most) if isinstance(one, Chunk)]

    assert len(data) < most < len(data) * len(records) / 8
    assert found == [b"<r><doc id='a'><text>a</text>", *(record.encode() for record in records)]


@pytest.mark.parametrize("every_other", [2, 3, 7])
def test_some_records_have_no_end_tag(every_other: int) -> None:
    """However many lack it, none takes another with it; also behind the place where records are no longer followed."""
    records = []
    for number in range(900):
        end = "" if number % every_other == 0 else "</doc>"
        records.append(f"<doc id='{number}'><text>t{number} {'word ' * 9}</text>{end}\n")
    records[800] = "<doc id='800' text='t'/>\n"
    data = f"<r><doc id='a'><text>a</text></doc>{''.join(records)}</r>".encode()
    head, most = read_head(b"<r><doc id='a'><text>a</text></doc></r>"), 1 << 13

    found = [one for one, _ in read_stream(io.BytesIO(data), head, most)]

    assert 4 * most < len(data) * len(records) / (8 * every_other)
    assert [one.doc_id for one in found if isinstance(one, Record)] == [
        "a", *(str(number) for number in range(900) if number != 800)
    ]  # fmt: skip
    assert [(one.reason, one.doc_id) for one in found if isinstance(one, Reject)] == [("no content", "800")]


@pytest.mark.parametrize(
    "unit",
    every(2, ["<doc>", "<doc/>", "<doc ", "<doc></doc >", "<!--</doc>", "<doc><doc></doc >", "</doc>", "<doc a='",
              "<doc><![CDATA[</doc>"]),
)  # fmt: skip
def test_hostile_ends_cost_linear_time(unit: str) -> None:
    """Whatever is repeated, eight times as much takes about eight times as long."""
    head, most = read_head(b"<r><doc><text>a</text></doc></r>"), 1 << 14

    def taken(size: int) -> float:
        stream = Expanded(io.BytesIO(b"<r>" + unit.encode() * (size // len(unit))), "")
        start = process_time()
        for _ in cut_records(cut_pieces(stream, head.separator, max_record=most), head, max_record=most):
            pass
        return process_time() - start

    short, long = (min(taken(size) for _ in range(2)) for size in (1 << 15, 1 << 18))  # others may slow one down
    assert long < 24 * short + 0.3
