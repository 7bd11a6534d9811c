"""Lists of duplicates: the layout is detected from the first lines, and pairs are counted without listing them."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.evaluating.evaluate import nice_step, resemblance_curve, score_curve
from nddup.ground.shown import csv_line
from nddup.reading.reference_lists import (
    Layout,
    LayoutError,
    Lists,
    first_lines,
    guess_layout,
    lines_of,
    read_lines,
)
from nddup.verifying.pair_counts import Agreement, count_pairs

PAIRS = [["1", "2"], ["2", "3"]]


@pytest.mark.parametrize(
    ("lines", "delimiter", "header", "score", "members", "scores"),
    [
        (["1,2", "2,3"], "comma", (), None, PAIRS, [None, None]),
        (["1\t2\t0.5", "2\t3\t1"], "tab", (), "column 3", PAIRS, [0.5, 1.0]),
        (["id_a;id_b;score", "1;2;.5", "2;3;"], "semicolon", ("id_a", "id_b", "score"), None, PAIRS, [None, None]),
        (["1 2", "2  3"], "blank", (), None, PAIRS, [None, None]),
        (["\ufeffid_a\tid_b\tj\tn", "1\t2\t.9\t4", "2\t3\t1e-3\t5"], "tab", ("id_a", "id_b", "j", "n"), "j", PAIRS,
         [0.9, 0.001]),
        (["# made by hand", "", "Doc1,Doc2", "1,2", "2,3"], "comma", ("Doc1", "Doc2"), None, PAIRS, [None, None]),
        (["q,p,similar", "1,2,0.5", "2,3,0.25"], "comma", ("q", "p", "similar"), "similar", PAIRS, [0.5, 0.25]),
        (['"a,b",c', '"x ""y""",z'], "comma", (), None, [["a,b", "c"], ['x "y"', "z"]], [None, None]),
        (["http://x/a,b http://y/1", "http://x/c http://y/2"], "blank", (), None,
         [["http://x/a,b", "http://y/1"], ["http://x/c", "http://y/2"]], [None, None]),
        (['{"doc_a": 1, "doc_b": "2", "jaccard": 1}', '{"doc_a": 2, "doc_b": 3}'], "json", (), "jaccard", PAIRS,
         [1.0, None]),
    ],
)  # fmt: skip
def test_lists_of_pairs_are_told(  # noqa: PLR0913, PLR0917 - a row of the table
    lines: list[str], delimiter: str, header: tuple[str, ...], score: str | None, members: object, scores: object
) -> None:
    """Delimiter, header, comments and score are detected from the lines; ids stay texts."""
    layout = guess_layout(lines)

    assert (layout.kind, layout.delimiter, layout.header, layout.score_name) == ("pairs", delimiter, header, score)
    assert read_lines(lines, layout) == (members, scores)


@pytest.mark.parametrize(
    "lines",
    [
        ["1 2 3", "4 5"],
        ["1\t2\tx", "4\t5\ty"],
        ['["1", 2, "3"]', '["4", "5"]'],
        ['{"cluster_id": "c", "members": ["1", 2, "3"]}', '{"members": [4, 5]}'],
    ],
)
def test_lists_of_groups_are_told(lines: list[str]) -> None:
    """Lines of different length, third fields that are not numbers, and JSON lists are groups."""
    layout = guess_layout(lines)
    read = read_lines([*lines, "  "], layout).members

    assert layout.kind == "groups"
    assert [ids[:2] for ids in read if ids] == [["1", "2"], ["4", "5"]]
    assert len(read) == 2


@pytest.mark.parametrize(
    ("lines", "header", "members"),
    [
        (["# made", "id_a,id_b,similarity"], ("id_a", "id_b", "similarity"), []),
        (["doc 1;doc 2"], ("doc 1", "doc 2"), []),
        (["a b"], (), [["a", "b"]]),
        (["x9,x10"], (), [["x9", "x10"]]),
    ],
)
def test_a_header_alone_is_a_list_of_no_pairs(lines: list[str], header: tuple[str, ...], members: object) -> None:
    """A header alone, as `nddup truth` writes if no texts are alike, has no pairs; one line of two ids is a pair."""
    layout = guess_layout(lines)

    assert (layout.kind, layout.header, read_lines(lines, layout).members) == ("pairs", header, members)


@pytest.mark.parametrize(
    ("text", "is_whole", "lines"),
    [
        (b"id_a,id_b\na,b", True, ["id_a,id_b", "a,b"]),
        (b"id_a,id_b\na,b\n", True, ["id_a,id_b", "a,b"]),
        ("a\u2028b,c\r\nd,e\r\n".encode(), True, ["a\u2028b,c", "d,e"]),
        (b"id_a,id_b\na,bc", False, ["id_a,id_b"]),
        (b"a,b", False, ["a,b"]),
        (b"", True, []),
    ],
)
def test_only_a_line_that_may_be_cut_is_not_looked_at(text: bytes, is_whole: bool, lines: list[str]) -> None:  # noqa: FBT001
    """A last line that may be cut does not decide the layout, unless it is the only one."""
    assert first_lines(text, is_whole=is_whole) == lines


def test_what_is_said_wins_over_what_is_told() -> None:
    """A given kind, delimiter, header or score wins over the detected one."""
    lines = ["a,b,1 x", "c,d,2 y"]

    groups = guess_layout(["1,2,3"], kind="groups")
    named = guess_layout(lines, header=True)
    blank = guess_layout(lines, delimiter="blank")
    scored = guess_layout(["i,j,3,7", "k,l,4,8"], score="4")

    assert read_lines(["1,2,3"], groups).members == [["1", "2", "3"]]
    assert read_lines(lines, named).members == [["c", "d"]]
    assert read_lines(lines, blank).members == [["a,b,1", "x"], ["c,d,2", "y"]]
    assert read_lines(["i,j,3,7"], scored).scores == [7.0]
    assert guess_layout(["i,j,3,7"], score="none").score is None


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "it holds no line"),
        ([" ", ""], "it holds no line"),
        (["one", "two"], "its lines have no two fields between tabs, semicolons, commas, blanks: 'one'"),
        (["{broken"], "its first line looks like JSON but is not valid"),
        (['{"x": 1}'], "its first line has neither two ids (id_a, id_b) nor members"),
        (['[["a", "b"], ["c", "d"]]'], "its first line is an array of all entries; expected one a line"),
        (
            ["doc_id,cluster_id", "a,1", "b,1"],
            "its header names a document (doc_id) and its cluster (cluster_id) a line",
        ),
        (["cluster id,score,id", "1,.5,a"], "its header names a document (id) and its cluster (cluster id) a line"),
    ],
)
def test_what_is_no_list_is_said(lines: list[str], said: str) -> None:
    """The error for a file that is not a list says what was expected."""
    with pytest.raises(LayoutError) as error:
        guess_layout(lines)

    assert str(error.value).startswith(said)


def test_scores_with_a_decimal_comma() -> None:
    """Tables between semicolons have them: a score is no third document."""
    lines = ["d1;d2;0,9", "d3;d4;1,0"]
    layout = guess_layout(lines)
    assert (layout.kind, layout.score) == ("pairs", 2)
    assert read_lines(lines, layout).scores == [0.9, 1.0]


def test_a_score_that_is_not_there_is_refused() -> None:
    """The error for a missing score names the columns that are there."""
    with pytest.raises(LayoutError, match="no column 'sim'; there are id_a, id_b"):
        guess_layout(["id_a,id_b", "1,2"], score="sim")


def test_lines_that_cannot_be_read_are_counted_not_dropped() -> None:
    """A pair with one id, broken JSON and a group without ids are entries of None."""
    pairs, groups = Layout("pairs", "comma", score=2), Layout("groups", "json")

    assert read_lines(["1", ",2", "1,2,x"], pairs) == Lists([None, None, ["1", "2"]], [None, None, None])
    assert read_lines(["[", "{}", "3", "[]", '["a"]'], groups).members == [None, None, None, None, ["a"]]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.integers(1, 7))
def test_lines_of_a_stream_do_not_depend_on_its_pieces(lines: list[str], size: int) -> None:
    """Lines are the same wherever the stream is cut, also inside a character."""
    data = "".join(line + "\n" for line in lines).encode()
    pieces = [data[i : i + size] for i in range(0, len(data), size)]

    assert list(lines_of(pieces)) == lines


@given(st.lists(st.sets(st.integers(-4, 9)), max_size=8))
def test_pairs_of_overlapping_sets_are_counted_once(family: list[set[int]]) -> None:
    """The count is the number of pairs in the union of all their pairs."""
    rows = [(number, item) for number, items in enumerate(family) for item in [*items, *list(items)[:1]]]
    sets, items = (np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ((), ())))

    assert count_pairs(sets, items) == len({pair for items in family for pair in combinations(sorted(items), 2)})


def test_disjoint_sets_of_any_size_are_counted_at_once() -> None:
    """Two sets of half a million have 249,999,500,000 pairs."""
    items = np.arange(1_000_000)

    assert count_pairs(items % 2, items) == 2 * (500_000 * 499_999 // 2)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_ratios_are_those_of_the_counts(common: int, missed: int, invented: int) -> None:
    """Precision and recall are None if the denominator is 0; F1 is their harmonic mean."""
    both = Agreement(common + missed, common + invented, common)

    assert both.precision == (common / (common + invented) if common + invented else None)
    assert both.recall == (common / (common + missed) if common + missed else None)
    if common:
        precision, recall = Fraction(common, common + invented), Fraction(common, common + missed)
        assert both.f1 == pytest.approx(float(2 * precision * recall / (precision + recall)))


def test_curves_add_up_from_the_top() -> None:
    """A point counts all that is at or above it; rows without a value are in no point."""
    scores = score_curve([(10, [2, 1, 2]), (7, [3, 3, 0])], 0.1, n_pairs=8)
    ours = resemblance_curve([(100, [4]), (80, [4]), (None, [9])], [(80, [3])], steps=100, reference=6)

    assert [(p["at"], p["reference"], p["common"], p["together"]) for p in scores] == [(0.7, 5, 4, 2), (1.0, 2, 1, 2)]
    assert [(p["recall"], p["precision"]) for p in scores] == [(0.8, 0.5), (0.5, 0.125)]
    assert [(p["at"], p["found"], p["common"], p["recall"]) for p in ours] == [(0.8, 8, 3, 0.5), (1.0, 4, 0, 0.0)]


@given(st.floats(1e-9, 1e9))
def test_steps_are_nice(least: float) -> None:
    """A step is at least what was asked, and at most two and a half times that."""
    assert least * 0.999 <= nice_step(least) <= least * 2.501


def test_rows_of_csv_are_quoted() -> None:
    """Commas, quotes and line ends stay in their field; nulls are empty."""
    assert csv_line(["a,b", 'c"d', None, True, 0.5]) == '"a,b","c""d",,true,0.5\n'
