"""The data of a report: scripts that no value can break out of, and rows compared with the tables."""

import base64
import json
import re
import zlib
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup import report
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import NddupError
from nddup.report import gather as gathering
from nddup.report.content import CLUSTERS, LENGTHS, LISTED, Family, find_families, list_cells, list_documents
from nddup.report.data import chunks
from nddup.report.for_review import is_resemblance_exact
from nddup.report.frame import draw_report
from nddup.report.gather import (
    MOST_CELLS,
    MOST_LISTED,
    Asked,
    Places,
    _share_out,
    gather,
    packed_script_of,
    report_run,
    script_of,
)
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.storage.local_folder import LocalFolder
from tests.counted_rows import once, once_each
from tests.opened.made_runs import write_family
from tests.report.made_reports import make_shown

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
values = st.recursive(st.none() | st.booleans() | st.integers() | any_text, lambda inner: st.lists(inner, max_size=4))


def value_of(script: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value that a chunk's script passes on."""
    assert script.startswith('nddup.put("a-1",')
    assert script.endswith(");\n")
    return json.loads(script.removeprefix('nddup.put("a-1",').removesuffix(");\n"))


@given(value=values)
def test_a_script_holds_its_value_and_nothing_else(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """A script returns its value, and no character of the value ends the script, a line or the encoding."""
    script = script_of("a-1", value)

    assert value_of(script) == value
    assert not set(script[:-1]) & set("<>&\n\r\u2028\u2029\ufeff\x00")
    assert script.encode()


@given(value=values)
def test_a_large_chunk_is_compressed_and_holds_its_value(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """A large chunk is base64 of deflated JSON, at most half as long, and gives its value back."""
    value = [value, ["many of the same words"] * 400]

    script = packed_script_of("a-1", value)

    packed = re.fullmatch(r'nddup\.unpack\("a-1","([A-Za-z0-9+/=]*)"\);\n', script)
    assert packed is not None
    assert json.loads(zlib.decompress(base64.b64decode(packed[1]))) == value
    assert 2 * len(script) < len(script_of("a-1", value))
    assert packed_script_of("summary", value) == script_of("summary", value)


WAYS_TO_MARKUP = (
    r"(inner|outer)HTML|insertAdjacentHTML|setHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser"
    r"|createContextualFragment"
)
PLACES = r"""nddup\.href\(|["`]\#/|"borderline\.html"|"\#limits"|FAMILIES\b|hash$|last\[name\]|\(name$"""
"""What a script may lead to: a place in the page itself."""


def test_scripts_make_neither_markup_nor_foreign_links() -> None:
    """No script makes markup of a text, and only `nddup.address` links outside: it asks for the protocol first."""
    assets = Path(report.__file__).parent / "assets"
    links = dict[str, list[str]]()
    for file in assets.glob("*.js"):
        script = file.read_text()
        if file.name == "chart.umd.min.js":
            continue
        assert not re.findall(WAYS_TO_MARKUP, script), file.name
        goals = re.findall(r"(?:href: |\.href = |location(?:\.hash)? = |\.src = )([^,;}]+)", script)
        links[file.name] = [goal for goal in goals if not re.match(PLACES, goal)]

    outside = {name: found for name, found in links.items() if found}
    assert outside == {"csv.js": ["url"], "data.js": ["policy.createScriptURL(name)"], "dom.js": ["parsed.href"]}
    assert '!["http:", "https:"].includes(parsed.protocol)) return nddup.foreign(url' in (assets / "dom.js").read_text()
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]+)"', draw_report(["theme.js"]))
    assert policy is not None
    assert {"default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"} <= {*policy[1].split("; ")}


@given(
    sizes=st.dictionaries(st.integers(2, 200_000), st.integers(1, 200_000), max_size=8).map(lambda d: sorted(d.items()))
)
def test_what_is_shown_of_a_cluster_fits_the_bounds(sizes: list[tuple[int, int]]) -> None:
    """Listed documents and matrix pairs stay within their bounds, counted cluster by cluster from the largest."""
    listed_each, matrix_each = _share_out(sizes)

    left, listed, cells = 100_000, 0, 0
    for size, count in reversed(sizes):
        taken = min(left, count)
        left -= taken
        held = min(size, matrix_each)
        listed += taken * min(size, listed_each)
        cells += taken * held * (held - 1) // 2
    assert 2 <= matrix_each <= listed_each <= 200
    assert listed <= MOST_LISTED or listed_each == 2
    assert cells <= MOST_CELLS or matrix_each == 2


@given(sizes=st.lists(st.integers(2, 6), max_size=5).map(lambda found: sorted(found, reverse=True)))
def test_documents_and_pairs_of_clusters_are_listed_once(sizes: list[int]) -> None:
    """Documents are listed once, the representative first; so are all pairs of the first four, in byte order."""
    clusters = [
        [(f"{number}-{member}é"[::-1], None, "") for member in range(size)] for number, size in enumerate(sizes)
    ]
    shown = make_shown(clusters)

    names = list_documents(shown.clusters)
    cells = list_cells(shown.listed, 4).to_pylist()

    listed = [
        (rank, place, doc)
        for rank, cluster in enumerate(clusters)
        for place, doc in enumerate([cluster[0][0], *sorted(one[0] for one in cluster[1:])])
    ]
    assert [tuple(row.values()) for row in names.to_pylist()] == listed
    ids = shown.documents["doc_id"].to_pylist()
    assert [ids[row] for row in shown.listed["document"].to_pylist()] == names["doc_id"].to_pylist()
    docs = {(rank, place): doc for rank, place, doc in listed}
    expected = [
        (rank, i, j, *sorted((docs[rank, i], docs[rank, j]), key=str.encode))
        for rank, size in enumerate(sizes)
        for i, j in combinations(range(min(size, 4)), 2)
    ]
    assert [(*places, ids[one], ids[other]) for *places, one, other in (row.values() for row in cells)] == expected


cut_clusters = st.lists(
    st.tuples(
        st.sampled_from("pqr"), st.sets(st.sampled_from("abcdefé"), min_size=1), st.none() | st.sampled_from("abf")
    ),
    max_size=6,
)


@given(made=cut_clusters)
def test_cut_clusters_and_families_are_listed_as_one_by_one(made: list[tuple[str, set[str], str | None]]) -> None:
    """A representative that the members lack is the first of as many; families are those made one by one."""
    count, members = len(made), [sorted(ids, key=str.encode) for _, ids, _ in made]
    columns = {
        "cluster_id": [f"{number:016x}" for number in range(count)], "support": [1] * count, "size": [9] * count,
        "component": [component for component, _, _ in made], "coverage": ["all"] * count,
        "representative": [chosen for _, _, chosen in made],
        "members": members,
    }  # fmt: skip
    clusters = pa.table(columns, schema=CLUSTERS)

    names = list_documents(clusters)
    document = pa.array(["abcdefé".index(doc) for doc in names["doc_id"].to_pylist()], pa.int32())
    families = find_families(clusters, pa.table([names["rank"], names["place"], document], schema=LISTED))

    expected = [
        [chosen, *(one for one in ids if one != chosen)][: len(ids)] if chosen else ids
        for ids, (_, _, chosen) in zip(members, made, strict=True)
    ]
    assert [tuple(row.values()) for row in names.to_pylist()] == [
        (rank, place, doc) for rank, ids in enumerate(expected) for place, doc in enumerate(ids)
    ]
    of_component: dict[str, list[int]] = {}
    for rank, (component, _, _) in enumerate(made):
        of_component.setdefault(component, []).append(rank)
    assert families == [
        Family(component, ranks, len(drawn), list(drawn))
        for component, ranks in of_component.items()
        if len(ranks) > 1
        for drawn in [dict.fromkeys(doc for rank in ranks for doc in sorted(map("abcdefé".index, expected[rank])))]
    ]


@given(data=st.data(), size=st.integers(0, 5))
def test_the_cells_of_a_matrix_are_its_pairs(data: st.DataObject, size: int) -> None:
    """Cells above the diagonal, row by row, hold the pairs that there are, and -1 for the others."""
    shown = make_shown([[(f"{cluster}{member}", None, "") for member in range(size + 2)] for cluster in "abc"])
    is_near = data.draw(st.lists(st.booleans(), min_size=len(shown.cells), max_size=len(shown.cells)))

    rows = dict(chunks(replace(shown, cells=shown.cells.filter(pa.array(is_near, pa.bool_())))))["members-0"]

    expected = [number for near in is_near for number in ([180, 900] if near else [-1])]
    assert [number for _, cells in rows for number in cells] == expected
    each = (size + 2) * (size + 1) // 2
    assert [sum(number != 900 for number in cells) for _, cells in rows] == [each] * 3


WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make inputs and a run: a family of near-equal texts, equal ones, ones alone, and a reject."""
    folder = tmp_path_factory.mktemp("report")
    texts = {f"n{number}": [*WORDS[:number], "x", *WORDS[number:]] for number in range(4)}
    texts |= {"same": texts["n0"], "alone": [word.upper() + "z" for word in WORDS]}
    lines = [
        json.dumps({"id": name, "url": f"http://x.org/{name}", "text": " ".join(text)}) for name, text in texts.items()
    ]
    (folder / "a.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    run_locally([str(folder / "a.jsonl")], str(folder / "run"), build_config({"output": {"texts": 3}}, origin="test"))
    return folder / "a.jsonl", folder / "run"


def test_what_is_shown_is_what_the_tables_say(finished: tuple[Path, Path]) -> None:
    """Clusters, documents, outcomes, pairs and histograms equal those of the tables, row by row."""
    tables = {
        name: pq.read_table(finished[1] / name).to_pylist()
        for name in ("clusters", "documents", "pairs", "keep", "members")
    }
    run = DuckRun(str(finished[1]))

    shown = gather(run)

    by_size = sorted(tables["clusters"], key=lambda row: (-row["size"], row["cluster_id"]))
    assert shown.clusters["cluster_id"].to_pylist() == [row["cluster_id"] for row in by_size]
    documents = shown.documents.to_pylist()
    listed = [row | documents[row["document"]] for row in shown.listed.to_pylist()]
    assert once((row["rank"], row["doc_id"]) for row in listed) == {
        (rank, doc) for rank, row in enumerate(by_size) for doc in row["members"]
    }
    fates = once_each((row["doc_id"], (row["kept"], row["duplicate_of"], row["reason"])) for row in tables["keep"])
    places = once_each((row["doc_id"], (row["url"], row["record"], row["n_tokens"])) for row in tables["documents"])
    for row in documents:
        assert (row["kept"], row["duplicate_of"], row["reason"]) == fates[row["doc_id"]]
        assert (row["url"], row["record"], row["n_tokens"]) == places[row["doc_id"]]
    named = {(row["rank"], row["place"]): row["doc_id"] for row in listed}
    near = once_each(((row["doc_a"], row["doc_b"]), (row["overlap"], row["resemblance"])) for row in tables["pairs"])
    cells = {
        (row["rank"], *sorted((named[row["rank"], row["first"]], named[row["rank"], row["second"]]))): (
            row["overlap"],
            row["resemblance"],
        )
        for row in shown.cells.to_pylist()
    }
    assert cells == {
        (rank, *pair): near[pair]
        for rank, row in enumerate(by_size)
        for pair in combinations(sorted(row["members"]), 2)
    }
    assert len(cells) > 5
    lengths = [row["n_tokens"] for row in tables["documents"]]
    assert dict(shown.lengths) == {
        low: sum(low <= n < high for n in lengths) for low, high in zip(LENGTHS, [*LENGTHS[1:], 1 << 40], strict=True)
    }
    assert sum(count for _, count in shown.resemblances) == len(tables["pairs"])
    assert [row["reason"] for row in shown.rejects] == ["malformed"]


def test_what_is_lost_and_the_weakest_pair_are_those_of_the_tables(
    finished: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst losses are those of `keep`; the weakest pair of a cluster is found though few of it are listed."""
    monkeypatch.setattr(gathering, "LISTED_EACH", 2)
    monkeypatch.setattr(gathering, "MATRIX_EACH", 2)
    tables = {name: pq.read_table(finished[1] / name).to_pylist() for name in ("clusters", "pairs", "keep")}

    shown = gather(DuckRun(str(finished[1])))

    near = once_each(((row["doc_a"], row["doc_b"]), row["resemblance"]) for row in tables["pairs"])
    members = once_each((row["cluster_id"], row["members"]) for row in tables["clusters"])
    named = shown.clusters["cluster_id"].to_pylist()
    least = {row["rank"]: row["least"] for row in shown.weakest.to_pylist()}
    assert least == {
        rank: min(near[pair] for pair in combinations(sorted(members[name]), 2))
        for rank, name in enumerate(named)
        if len(members[name]) > 2
    }
    assert least
    removed = [row for row in tables["keep"] if not row["kept"]]
    lost = sorted((-row["lost"], row["doc_id"], row["duplicate_of"]) for row in removed if row["lost"])
    assert shown.losses == {
        "removed": len(removed),
        "known": len(removed),
        "nothing": len(removed) - len(lost),
        "worst": [[doc, of, -share] for share, doc, of in lost[:3]],
    }
    assert lost


@pytest.mark.usefixtures("spark")
def test_a_report_needs_the_inputs_only_for_texts_that_were_not_stored(
    finished: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Requested texts are read again; once the inputs have changed that fails in one line, but a plain report works."""
    inputs, run = finished
    shown = gather(DuckRun(str(run)))
    cluster = shown.clusters["cluster_id"].to_pylist()[0]
    assert len(shown.texts) < 5  # those of `output.texts` and of the pairs nearest to the threshold

    assert main(["report", str(run), "--cluster", cluster]) == 0
    summary = (run / "report" / "data" / "summary.js").read_text()
    assert '"texts":{"documents":5,' in summary
    known = set(shown.texts["doc_id"].to_pylist())
    other = next(row for row in shown.documents["doc_id"].to_pylist() if row not in known)
    assert main(["report", str(run), "--doc", other, "--doc", min(known)]) == 0
    assert f'"texts":{{"documents":{len(known) + 1},' in (run / "report" / "data" / "summary.js").read_text()
    assert main(["report", str(run), "--doc", "nobody"]) == 2
    assert "--doc nobody: no such document" in capsys.readouterr().err
    inputs.write_text("{}\n")
    assert main(["report", str(run), "--cluster", cluster]) == 1
    assert "a.jsonl; run the job again" in capsys.readouterr().err
    assert main(["report", str(run), "--cluster", "0" * 16]) == 2
    assert "no such cluster" in capsys.readouterr().err
    inputs.unlink()
    assert report_run(DuckRun(str(run)), LocalFolder(str(run))) == f"{run}/report/index.html"
    made = dict(chunks(gather(DuckRun(str(run)))))
    names = {path.stem for path in (run / "report" / "data").iterdir() if path.suffix == ".js"}
    assert names == made.keys()


def test_pairs_without_a_resemblance_are_counted_apart(tmp_path: Path) -> None:
    """Pairs without a resemblance are counted apart; per cents are rounded down, and 0.29 counts as 29."""
    shown = gather(DuckRun(str(write_family(tmp_path / "run"))))

    assert shown.resemblances == [(None, 1), (29, 1), (100, 1)]
    histogram = dict(chunks(shown))["summary"]["histograms"]["resemblance"]
    assert histogram["unknown"] == 1
    assert sum(histogram["counts"]) == 2


def test_texts_that_are_gone_are_named(tmp_path: Path) -> None:
    """For a requested cluster every document without a text is read, and one that is not found is an error."""
    run = DuckRun(str(write_family(tmp_path / "run")))
    wanted: list[Places] = []

    def find_all(documents: Places) -> pa.Table:
        wanted.append(documents)
        return pa.table({"doc_id": list(documents), "text": ["again"] * len(documents)})

    shown = gather(run, Asked(["f" * 16], find_all))

    names = enumerate(["a", "b", "c\"'"])
    assert [{name: place[:2] for name, place in asked.items()} for asked in wanted] == [
        {name: ("p.xml", bytes([key]) * 16) for key, name in names}
    ]
    assert shown.texts["text"].to_pylist() == ["again"] * 3
    with pytest.raises(NddupError, match="no longer hold document c"):
        gather(run, Asked(["f" * 16], lambda documents: find_all(documents).slice(0, 2)))


@pytest.mark.parametrize(
    ("given", "is_exact"),
    [
        ({}, True),
        ({"pairs": {"confirm": "none"}}, False),
        ({"pairs": {"confirm": "edit"}}, False),
        ({"pairs": {"measure": "containment"}}, False),
        ({"pairs": {"confirm": "none"}, "sketch": {"kind": "whole"}}, True),
    ],
)
def test_a_resemblance_is_called_exact_where_all_shingles_were_compared(
    given: dict[str, Any], *, is_exact: bool
) -> None:
    """Of a run whose sketches alone decide, or whose texts are compared by their edits, it is an estimate."""
    assert is_resemblance_exact(Config(**given).model_dump()) == is_exact
