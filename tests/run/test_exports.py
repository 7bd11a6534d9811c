"""The outputs of a run for other programs: the inverted table and the kept documents as XML."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow.parquet as pq

from nddup.commands.mine import mine_file
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.counted_rows import once, once_each

COUNT = 30
ODD = {"a<b&c": 'x "y" ]]>', "tab\tid": "http://x/?a=1&b=2", "юникод": "http://x/я", "bell\x07": "http://x/\x01"}


def pages(folder: Path) -> Path:
    """Write families of edited texts, and documents whose ids, URLs and texts would break XML; returns the path."""
    rows = []
    for family in range(3):
        words = [f"w{value}" for value in np.random.default_rng(family).integers(0, 10**6, 60)]
        for version in range(4):
            edited = list(words)
            edited[5 + 11 * version] = "edit"
            rows.append({"id": f"f{family}v{version}", "url": f"http://x/{version}", "text": " ".join(edited)})
    odd = '<meta charset="windows-1251"> ]]> &amp; тест \x00 <b>слово</b> ' + "слово " * 9
    rows += [{"id": name, "url": url, "text": f"{odd} {number}"} for number, (name, url) in enumerate(ODD.items())]
    (folder / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "pages.jsonl"


def sketches(run: Path) -> dict[str, tuple[str | None, list[int]]]:
    """Return the URL and sketch of each document by its id."""
    rows = pq.read_table(run / "documents", columns=["doc_id", "url", "sketch"]).to_pylist()
    return once_each((row["doc_id"], (row["url"], row["sketch"])) for row in rows)


def test_context_and_kept_documents_are_what_other_programs_read(tmp_path: Path) -> None:
    """The maximal sets of `context.fimi` are the clusters, and the XML, read again, gives the same sketches."""
    first = {
        "pairs": {"measure": "overlap", "threshold": COUNT},
        "output": {"context": True, "kept": "xml", "texts": 0},
    }
    run, again = tmp_path / "run", tmp_path / "again"
    run_locally([str(pages(tmp_path))], str(run), build_config(first, origin="test"))

    mine_file(str(run / "context.fimi"), support=COUNT, output=str(tmp_path / "sets.txt"), min_size=2)
    ids = dict(zip(*pq.read_table(run / "documents", columns=["doc_key", "doc_id"]).to_pydict().values(), strict=True))
    mined = once(
        (frozenset(ids[int(key)] for key in line.split()[:-1]), int(line.split()[-1].strip("()")))
        for line in (tmp_path / "sets.txt").read_text().splitlines()
    )
    clusters = pq.read_table(run / "clusters").to_pylist()
    assert mined == once((frozenset(row["members"]), row["support"]) for row in clusters)
    assert len(mined) >= 3

    files = sorted((run / "kept").glob("part-*"))
    assert sum(len(ET.parse(file).getroot().findall("document")) for file in files) == len(  # noqa: S314
        [kept for kept in pq.read_table(run / "keep")["kept"].to_pylist() if kept]
    )
    run_locally([str(run / "kept")], str(again), build_config({"output": {"texts": 0}}, origin="test"))
    before, after = sketches(run), sketches(again)
    kept = once(row["doc_id"] for row in pq.read_table(run / "keep").to_pylist() if row["kept"])
    named = {name: name.replace("\x07", "\ufffd") for name in kept}
    assert set(after) == set(named.values())
    assert [after[named[name]][1] for name in sorted(kept)] == [before[name][1] for name in sorted(kept)]
    assert kept & set(ODD)
    assert {name: after[named[name]][0] for name in kept & set(ODD)} == {
        name: ODD[name].replace("\x01", "\ufffd") for name in kept & set(ODD)
    }
