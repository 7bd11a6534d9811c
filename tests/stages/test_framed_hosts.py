"""Pages that share most of their shingles with the pages of their host: by the definition, and as a run says it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.cli import main
from nddup.engines.engine import Engine
from nddup.stages.framed_hosts import list_framed, share_common
from nddup.tables import DOCUMENTS
from tests.engine_rows import see_rows


@given(st.lists(st.sets(st.integers(0, 60), max_size=30), max_size=12), st.integers(2, 5))
def test_the_share_is_that_of_ids_that_half_of_the_others_have(texts: list[set[int]], fewest: int) -> None:
    """An id counts where a sketch reaches it: sketches are cut to seven ids, so that many do not."""
    sketches = [sorted(text)[:7] for text in texts]
    shares = []
    for sketch in sketches:
        common = 0
        for one in sketch:
            having = sum(one in other for other in sketches)
            reaching = sum(bool(other) and other[-1] >= one for other in sketches)
            common += having >= fewest and having - 1 >= (reaching - 1) / 2
        shares.append(common / max(len(sketch), 1))

    offsets = np.cumsum([0, *map(len, sketches)])
    ids = np.array([one for sketch in sketches for one in sketch], np.uint64)
    assert share_common(offsets, ids, fewest).tolist() == pytest.approx(shares)


def test_hosts_are_those_of_addresses_and_equal_texts_count_once(engine: Engine) -> None:
    """On both engines, and without a login. Of eleven pages of one host with a menu two are little else."""

    def page(key: int, host: str, menu: int, own: int, group: int | None = None) -> dict[str, object]:
        sketch = [*range(menu), *range(1000 + 100 * key, 1000 + 100 * key + own)]
        same = f"d{key if group is None else group}"
        return {"doc_id": f"d{key}", "doc_key": key, "group": same, "url": host, "sketch": sketch}

    rows = [page(key, f"http://me:{key}@Menu.example/a/b", 9, 3 if key < 2 else 30) for key in range(11)]
    rows += [page(key, "https://menu.example", 9, 3, group=0) for key in range(11, 40)]
    rows += [page(key, "https://plain.example/", 2, 30) for key in range(40, 60)]
    rows += [page(key, url, 30, 0) for key, url in enumerate(["", "menu.example/c", "file:menu", "http:"] * 4, 60)]
    see_rows(engine, DOCUMENTS, rows)

    assert [host.model_dump() for host in list_framed(engine)] == [{"host": "menu.example", "pages": 11, "share": 0.18}]


@pytest.mark.parametrize(("setting", "is_said"), [("all", True), ("main", False)])
def test_a_run_says_which_hosts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], *, setting: str, is_said: bool
) -> None:
    """And names the setting; where that is set, menus are no part of the texts."""
    folder = tmp_path / "mirror" / "docs.example.org"
    folder.mkdir(parents=True)
    menu = "".join(f"<li><a href='{n}'>Chapter {n}</a></li>" for n in range(60))
    for page in range(12):
        own = " ".join(f"word{page}x{n}" for n in range(40))
        (folder / f"{page}.html").write_text(f"<html><nav><ul>{menu}</ul></nav><main><p>{own}.</p></main></html>")

    assert main(["run", str(folder.parent), "--output", str(tmp_path / "out"), "--set", f"input.text={setting}"]) == 0

    out = capfd.readouterr()
    assert ("100% of docs.example.org" in out.out + out.err) is is_said
    assert ("input.text=main" in out.out + out.err) is is_said
