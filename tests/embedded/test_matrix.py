"""Every two values of engine, kind, measure, cluster mode and format together give the tables of the definitions."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nddup.embedded.run import run_locally
from nddup.errors import ConfigError
from nddup.ground.metrics import ENGINES_OWN
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.sketching.kinds import KINDS
from nddup.spark.run import run_job
from nddup.tables import RESULTS
from tests.counted_rows import once, once_each
from tests.embedded import brute_force
from tests.embedded.pairwise import Cell, cover_pairs, pairs_in
from tests.embedded.written_formats import WRITERS, write_texts_as
from tests.results.kind_runs import texts

SIZE = 30
THRESHOLD = Fraction(3, 5)
AXES = {
    "engine": ("local", "spark"),
    "kind": tuple(KINDS),
    "measure": ("resemblance", "overlap", "containment"),
    "mode": ("all", "cover", "partition", "components", "none"),
    "format": tuple(WRITERS),
}
OF_KIND: dict[str, dict[str, Any]] = {
    "min-s": {"sketch": {"size": SIZE}},
    "super": {"sketch": {"size": SIZE, "rows": 1}},  # one row per band: every pair with a common value is compared
    "min-perm": {"sketch": {"size": SIZE}},
    "minhash": {"sketch": {"size": SIZE, "bands": SIZE, "rows": 1}},
    "mod-m": {"sketch": {"modulus": 2}},
    "mod-pow2": {"sketch": {"size": SIZE}},
    "whole": {},
    "lexicon": {"lexicon": {"low": 0.0, "high": 1.0}},
    "i-match": {"lexicon": {"low": 0.0, "high": 1.0}},
    "keywords": {"lexicon": {"languages": ["english"]}},
}


@cache
def config_of(kind: str, measure: str, mode: str) -> Config:
    """Return the settings of a cell."""
    sections = {name: dict(section) for name, section in OF_KIND[kind].items()}
    sections.setdefault("sketch", {})["kind"] = kind
    if not KINDS[kind].is_of_words and kind != "whole":
        sections["shingle"] = {"length": 2}
    settings = {
        **sections,
        "pairs": {"measure": measure, "threshold": float(THRESHOLD)},
        "clusters": {"mode": mode},
        "output": {"texts": 0, "report": False},
    }
    return build_config(settings, origin="test")


def is_allowed(cell: Cell) -> bool:
    """Return whether the settings of a cell are accepted."""
    try:
        config_of(cell["kind"], cell["measure"], cell["mode"])
    except ConfigError:
        return False
    return True


CELLS = cover_pairs(AXES, is_allowed)

WHOLE = 14
"""The first cells, of which each meets many values for the first time; of the others `make test` tries every fourth."""


def marks_of(cell: Cell, at: int) -> list[pytest.MarkDecorator]:
    """Return the marks of the cell at a place in the list: it needs Spark, or is left to `make nightly`.

    All that need Spark are: by day `test_engines` has prefixes, bands and many features, `test_lexicons` words.
    """
    if cell["engine"] != "spark":
        return [pytest.mark.nightly] * (at >= WHOLE and at % 4 > 0)
    return [pytest.mark.spark, pytest.mark.nightly]


def test_every_two_values_meet() -> None:
    """The cells hold every two values, except those that the settings refuse as the kinds and modes declare."""
    met = frozenset[Any]().union(*(pairs_in(cell) for cell in CELLS))
    count = {name: len(values) for name, values in AXES.items()}
    due = sum(count[a] * count[b] for a in AXES for b in AXES if a < b)
    refused = {("kind", one.name, "measure", measure) for one in KINDS.values() for measure in one.refused}
    refused |= {
        ("kind", one.name, "mode", mode) for one in KINDS.values() if not one.is_mined for mode in ("all", "cover")
    }
    refused |= {("measure", "containment", "mode", mode) for mode in ("all", "cover")}

    assert len(met) == due - len(refused)
    assert not {(*a, *b) for a, b in met} & refused
    assert len(CELLS) < 80


def documents() -> dict[str, str]:
    """Return texts that every format can hold: none is empty."""
    return {name: text for name, text in texts().items() if text.strip()}


def plain(value: Any) -> Any:  # noqa: ANN401 - a cell of a table
    """Return a value with the ids of HTML files reduced to those that other formats have."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.removesuffix(".html") if isinstance(value, str) else value


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of a run, with plain ids."""
    return [{key: plain(value) for key, value in row.items()} for row in pq.read_table(folder / name).to_pylist()]


def counted(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return the metrics without those of one engine only."""
    if isinstance(value, dict):
        return {key: counted(item) for key, item in value.items() if key not in ENGINES_OWN}
    return value


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401 - a function
    """A function that returns the documents of a kind, from JSON lines: the same for every measure, mode and format."""

    @cache
    def sketched(kind: str) -> dict[str, dict[str, Any]]:
        folder = tmp_path_factory.mktemp("reference")
        source = write_texts_as("jsonl", folder, documents())
        run_locally([str(source)], str(folder / "run"), config_of(kind, "overlap", "components"))
        return once_each((row["doc_id"], row) for row in read(folder / "run", "documents"))

    return sketched


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, id="-".join(cell.values()), marks=marks_of(cell, at)) for at, cell in enumerate(CELLS)],
)
def test_cell(cell: Cell, reference: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:  # noqa: ANN401
    """Sketches are those of JSON lines, and other tables those of brute force; Spark agrees in every row and count."""
    source = write_texts_as(cell["format"], tmp_path, documents())
    config = config_of(cell["kind"], cell["measure"], cell["mode"])
    metrics = run_locally([str(source)], str(tmp_path / "local"), config)
    folder = tmp_path / "local"

    if cell["engine"] == "spark":
        theirs = run_job(request.getfixturevalue("spark"), [str(source)], str(tmp_path / "spark"), config)
        assert counted(theirs) == counted(metrics)
        for name in RESULTS:
            tables = [pq.read_table(tmp_path / engine / name) for engine in ("local", "spark")]
            assert tables[0].schema.names == tables[1].schema.names
            assert tables[0].schema.types == tables[1].schema.types
            assert sorted(map(repr, tables[0].to_pylist())) == sorted(map(repr, tables[1].to_pylist())), name
        folder = tmp_path / "spark"

    found = once_each((row["doc_id"], row) for row in read(folder, "documents"))
    due = reference(cell["kind"])
    for column in ("n_tokens", "n_features", "group", "sketch", "signature"):
        assert {name: row[column] for name, row in found.items()} == {name: row[column] for name, row in due.items()}
    require_definitions(cell, due, {name: read(folder, name) for name in ("pairs", "clusters", "keep")})


def require_definitions(
    cell: Cell, rows: Mapping[str, dict[str, Any]], tables: Mapping[str, list[dict[str, Any]]]
) -> None:
    """Assert that pairs, clusters and keep-list are those of the definitions for these documents."""
    kind = KINDS[cell["kind"]]
    rule = brute_force.Rule(cell["measure"], THRESHOLD, kind.estimate, SIZE)
    pairs = brute_force.find_pairs(rows, rule)
    assert once((row["doc_a"], row["doc_b"]) for row in tables["pairs"]) == pairs
    assert len(pairs) > 4
    brute_force.require_keep_list(tables["keep"], pairs)

    clusters = once_each((frozenset(row["members"]), row["support"]) for row in tables["clusters"])
    assert len(clusters) == len(tables["clusters"])
    if cell["mode"] == "none":
        assert not clusters
    elif cell["mode"] == "components":
        assert set(clusters) == brute_force.find_components(pairs)
    elif cell["mode"] == "partition":
        stars: dict[str, set[str]] = {}
        for row in tables["keep"]:
            stars.setdefault(row["duplicate_of"] or row["doc_id"], set()).add(row["doc_id"])
        assert set(clusters) == {frozenset(star) for star in stars.values() if len(star) > 1}
    else:
        maximal = brute_force.find_maximal(rows, pairs, rule)
        assert clusters == maximal if cell["mode"] == "all" else clusters.items() <= maximal.items()
        held = {pair for pair in pairs if any(members.issuperset(pair) for members in clusters)}
        assert held == {pair for pair in pairs if any(members.issuperset(pair) for members in maximal)}
