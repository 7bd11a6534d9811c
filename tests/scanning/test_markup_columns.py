"""Columns that hold pages by their names: JSON lines, tables, Parquet and XML, read as a run reads them."""

import csv
import html
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config

PART = "<div><p>the text of {} <b>wor</b>ds</p><script>var words = {}; if (words < 2) go()</script></div>"
PLAIN = "a list of List<String> &amp; <p>words"


def write(folder: Path, ending: str, column: str, texts: list[str]) -> None:
    """Write a file with this column."""
    path = folder / f"a.{ending}"
    rows = [{"id": f"{ending}{at}", column: text} for at, text in enumerate(texts)]
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "csv":
        with path.open("w", newline="") as out:
            csv.writer(out).writerows([["id", column], *(row.values() for row in rows)])
    else:
        fields = (f"<id>{row['id']}</id><{column}>{html.escape(row[column])}</{column}>" for row in rows)
        path.write_text(f"<docs>{''.join(f'<doc>{one}</doc>' for one in fields)}</docs>")


@pytest.mark.parametrize("column", ["html", "raw_html", "page_html", "text"])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "xml"])
def test_scripts_in_a_column_of_pages_are_no_text(tmp_path: Path, ending: str, column: str) -> None:
    """A column named html is markup, also a part of a page; in any other each tag is judged alone, and scripts stay."""
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", ending, column, [PART.format(at, at) for at in range(3)] + [PLAIN])

    settings = {"input": {"content": column}, "output": {"report": False}}
    run_locally([str(tmp_path / "in")], str(tmp_path / "out"), build_config(settings, origin="test"))

    documents = pq.read_table(tmp_path / "out" / "documents", columns=["doc_id", "n_tokens"]).to_pylist()
    counts = {one["doc_id"]: one["n_tokens"] for one in documents}
    assert counts[f"{ending}0"] == (5 if column != "text" else 12)
    assert counts[f"{ending}3"] == (5 if column != "text" else 6)
