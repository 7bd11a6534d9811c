"""Run a notebook in a kernel and store its outputs in it: `python -m scripts.run_notebook NOTEBOOK…`."""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 300
"""Longest time of a cell."""


def run_notebook(notebook: Any, folder: Path) -> None:  # noqa: ANN401 - nbformat has no types
    """Run the code cells of a notebook of format 4 in a new kernel, and give each its outputs.

    What a cell says on standard error, such as the progress of a run, is not stored; nor is when it was run.

    Args:
        notebook: the notebook, changed in place.
        folder: the working directory of the kernel.

    Raises:
        nbclient.exceptions.CellExecutionError: raised by a cell; later cells are not run.
    """
    metadata = dict(notebook.metadata)
    NotebookClient(
        notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}, coalesce_streams=True,
        record_timing=False,
    ).execute()  # fmt: skip
    notebook.metadata = nbformat.from_dict(metadata)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]


def main() -> None:
    """Run each notebook named on the command line, in its own folder, and write it with its outputs."""
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        run_notebook(notebook, path.parent)
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
