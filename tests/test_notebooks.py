"""Notebooks in a real kernel, with ipywidgets and without: they give the outputs that they store."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from scripts.run_notebook import SECONDS, run_notebook
from tests.places import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TIMES = re.compile(r"^ *[\d.,]+ s, results in .*\n", re.MULTILINE)


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_gives_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a kernel, a notebook gives each stored text output word for word, and a figure wherever one is stored."""
    monkeypatch.delenv("COLUMNS", raising=False)  # a notebook has no terminal, whose width cuts tables
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    stored = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    folder = tmp_path / "docs" / "notebooks"
    folder.mkdir(parents=True)

    run_notebook(notebook, folder)

    made = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    assert {name: _texts(outputs) for name, outputs in made.items()} == {
        name: _texts(outputs) for name, outputs in stored.items()
    }, "python -m scripts.run_notebook NOTEBOOK makes the outputs anew"
    assert sum("image/png" in output.get("data", {}) for outputs in stored.values() for output in outputs) >= 3


@pytest.mark.thorough
def test_a_kernel_without_widgets(tmp_path: Path) -> None:
    """Where ipywidgets is not installed, a run shows its progress in one line, and its summary as a table."""
    hidden = "import sys; sys.modules['ipywidgets'] = None\nimport nddup"
    asked = (
        "run = nddup.find_duplicates([{'id': n, 'text': 'one text of seven words, three times'} for n in 'abc'])\nrun"
    )
    cells = [new_code_cell(code) for code in (hidden, asked)]  # type: ignore[no-untyped-call]
    notebook = new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}})

    client.execute()

    shown = notebook.cells[1].outputs
    said = "".join(output.text for output in shown if output.get("name") == "stderr")
    assert "Warning" not in said
    assert said.count("\n") == 0
    assert "\r" in said
    [result] = [output for output in shown if output.output_type == "execute_result"]
    assert "<table" in result.data["text/html"]
    assert "kept" in result.data["text/plain"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_of_the_format(path: Path) -> None:
    """A notebook, its cells and their outputs follow format 4.5, and its links lead to files that exist."""
    notebook = json.loads(path.read_text(encoding="utf-8"))

    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    for cell in notebook["cells"]:
        keys = {"cell_type", "id", "metadata", "source"}
        assert set(cell) == keys | ({"execution_count", "outputs"} if cell["cell_type"] == "code" else set())
        assert all(isinstance(line, str) for line in cell["source"])
        for output in cell.get("outputs", ()):
            assert output["output_type"] in {"stream", "execute_result", "display_data"}
        for target in re.findall(r"\]\(([^)\s]+)\)", "".join(cell["source"])):
            assert (path.parent / target).exists(), target


def _texts(outputs: list[dict[str, Any]]) -> list[str]:
    """Return the outputs as text, without seconds; of a figure only the text that stands for it."""
    found = []
    for output in outputs:
        parts = {"text": output.get("text", []), **output.get("data", {})}
        found += [
            f"{name}: {TIMES.sub('', ''.join(text))}" for name, text in sorted(parts.items()) if name != "image/png"
        ]
    return found
