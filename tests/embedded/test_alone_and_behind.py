"""Two things that spare large runs time: documents that are alone need no join, and all are written meanwhile."""

from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from nddup.embedded import steps
from nddup.embedded.collapse import Nodes
from nddup.embedded.mine_components import Graph
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckEngine
from nddup.errors import OutputError
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.stages.keep import list_kept, replacing_of
from nddup.storage.local_folder import LocalFolder
from tests.embedded.edited_texts import make_texts, write_lines
from tests.finished_runs import sorted_tables, stopped_before

PLAIN: dict[str, Any] = {"output": {"report": False, "texts": 0}, "local": {"processes": 1}}

RULES: dict[str, dict[str, Any]] = {
    "by id": {},
    "containment": {
        "pairs": {"measure": "containment"},
        "sketch": {"kind": "mod-pow2", "size": 40},
        "clusters": {"mode": "partition"},
    },
    "following clusters": {"clusters": {"mode": "partition"}},
    "some forced": {"keep": {"force": "force.csv"}},
    "values apart": {"keep": {"same": ["nddup_source"]}},
}


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small collection: families, copies, empty texts, one that is alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "force.csv").write_text("lone,removed\nf0v1,kept\nshort,removed\n", encoding="utf-8")
    return write_lines(tmp_path / "pages.jsonl", make_texts())


@pytest.mark.parametrize("rule", RULES)
def test_what_is_alone_stays_as_the_joins_say(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """The rows of all documents are those of a keep-list in which every one is joined."""
    given, rows = steps._decide_documents, list[int]()  # noqa: SLF001

    def compare(engine: DuckEngine, nodes: Nodes, graph: Graph, config: Config) -> pa.Table:
        made = given(engine, nodes, graph, config)
        assert made.equals(steps.put_in_place(list_kept(engine, replacing_of(config)), nodes.ids).cast(made.schema))
        rows.append(len(made))
        return made

    monkeypatch.setattr(steps, "_decide_documents", compare)
    run_locally([str(pages)], str(tmp_path / "run"), build_config({**PLAIN, **RULES[rule]}, origin="test"))
    assert rows == [len(make_texts()) + 1]  # a line without an id has one made up


def test_pairs_are_looked_for_while_documents_are_written(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write waits for the step after next, which would else wait for it; the tables are those of any other run."""
    begun, write, pair = Event(), LocalFolder.write, steps.pair

    def write_late(folder: LocalFolder, name: str, *rows: Any, **how: Any) -> None:  # noqa: ANN401 - as of `write`
        assert name != "documents" or begun.wait(60)
        write(folder, name, *rows, **how)

    def begin(*given: Any, **how: Any) -> steps.Paired:  # noqa: ANN401 - as of `pair`
        begun.set()
        return pair(*given, **how)

    config = build_config(PLAIN, origin="test")
    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "write", write_late)
        patch.setattr(steps, "pair", begin)
        run_locally([str(pages)], str(tmp_path / "run"), config)
    run_locally([str(pages)], str(tmp_path / "whole"), config)
    assert sorted_tables(tmp_path / "run") == sorted_tables(tmp_path / "whole")


def test_a_run_that_ends_early_leaves_its_documents(pages: Path, tmp_path: Path) -> None:
    """An attempt that is interrupted where pairs begin waits until the documents are there, and the next takes them."""
    config, output = build_config(PLAIN, origin="test"), str(tmp_path / "run")
    with stopped_before("pairs"), pytest.raises(KeyboardInterrupt):
        run_locally([str(pages)], output, config)
    assert run_locally([str(pages)], output, config, resume=True)["stages"]["sketch"]["resumed"] == [
        "documents",
        "rejects",
    ]


def test_documents_that_cannot_be_written_end_the_run(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the thread is that of the run; without the file in the way `resume` reads the records again."""
    config, output, write = build_config(PLAIN, origin="test"), str(tmp_path / "run"), LocalFolder.write

    def fail(folder: LocalFolder, name: str, *rows: Any, **how: Any) -> None:  # noqa: ANN401 - as of `write`
        if name == "documents":
            raise OutputError("the disk is full")
        write(folder, name, *rows, **how)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "write", fail)
        with pytest.raises(OutputError, match="the disk is full"):
            run_locally([str(pages)], output, config)
    assert run_locally([str(pages)], output, config, resume=True)["stages"]["sketch"]["resumed"] == []
