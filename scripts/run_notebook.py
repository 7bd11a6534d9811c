"""Run a notebook and store its outputs in it: `python -m scripts.run_notebook docs/notebooks/first-look.ipynb`.

Cells run one after another in this process, as plain Python: printed text, the value of a last expression and
matplotlib figures become their outputs. A kernel, and the libraries that it needs, would add nothing to that.
"""

import ast
import base64
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
Output = dict[str, Any]


def run_cells(notebook: Notebook, folder: Path) -> Iterator[tuple[str, list[Output]]]:
    """Run the code cells; yield for each (id of the cell, outputs in the notebook format).

    Args:
        notebook: of format 4.5.
        folder: the working directory of the cells.

    Raises:
        Exception: raised by a cell; later cells are not run.
    """
    os.environ["MPLBACKEND"] = "agg"
    names: dict[str, Any] = {"__name__": "__main__"}
    with chdir(folder):
        count = 0
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                yield cell["id"], _run("".join(cell["source"]), cell["id"], names, count)


def _run(source: str, name: str, names: dict[str, Any], count: int) -> list[Output]:
    """Run one cell; return its printed text, the value of its last expression and its figures."""
    tree = ast.parse(source, filename=name)
    is_shown = bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")
    last = tree.body.pop() if is_shown else None
    said, logged, value = io.StringIO(), io.StringIO(), None
    try:
        with redirect_stdout(said), redirect_stderr(logged):
            exec(compile(tree, name, "exec"), names)  # noqa: S102 - the project's own notebook
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), name, "eval"), names)  # noqa: S307 - as above
    except BaseException as error:
        error.add_note(f"in cell {name}, which logged: {logged.getvalue()}")
        raise

    found: list[Output] = []
    if said.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": said.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {name: text.splitlines(keepends=True) for name, text in _shown(value).items()}
        found.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return found + [
        {"data": {"image/png": image, "text/plain": ["<Figure>"]}, "metadata": {}, "output_type": "display_data"}
        for image in _figures()
    ]


def _shown(value: Any) -> Mapping[str, str]:  # noqa: ANN401 - whatever a cell ends with
    plain = {"text/plain": repr(value)}
    html = getattr(value, "_repr_html_", lambda: None)()
    return plain if html is None else {"text/html": html} | plain


def _figures() -> Iterator[str]:
    """Yield the open figures as PNG in base64, then close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        image = io.BytesIO()
        pyplot.figure(number).savefig(image, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        yield base64.b64encode(image.getvalue()).decode()
    pyplot.close("all")


def main() -> None:
    """Run each notebook named on the command line, in its own folder, and write it with its outputs."""
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
        outputs = dict(run_cells(notebook, path.parent))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for count, cell in enumerate(cells, 1):
            cell.update(outputs=outputs[cell["id"]], execution_count=count)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
