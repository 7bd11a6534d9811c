"""`nddup explain`: its numbers against formulas and brute force, its figures, and its one-line errors."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.cli import main
from nddup.explaining.curves import DRAWN, draw_curves, explain_bands, explain_support
from nddup.explaining.effects import explain_settings
from nddup.matching.threshold import Threshold, resemblance_parts
from nddup.settings.load import load_config
from nddup.sketching.kinds import KINDS
from nddup.sketching.minhash import candidate_probability


def row_of(text: str, resemblance: str) -> list[str]:
    """Return the cells of the row that begins with this resemblance."""
    (found,) = [line.split("  ") for line in text.splitlines() if line.strip().startswith(f"{resemblance} ")]
    return [cell.strip() for cell in found if cell.strip()]


def test_bands_show_the_published_curve(capsys: pytest.CaptureFixture[str]) -> None:
    """20 bands of 5 rows give the percentages of the table of 2017, and its threshold."""
    status = main(["explain", "--bands", "20", "--rows", "5"])
    text = capsys.readouterr().out

    assert status == 0
    assert [row_of(text, r)[1] for r in ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8")] == [
        "0.6 %", "4.7 %", "18.6 %", "47.0 %", "80.2 %", "97.5 %", "99.96 %",
    ]  # fmt: skip
    assert "(1/b)^(1/r) = 0.5493" in text
    assert "0.80 GB of sketches" in text  # 100 slots of 8 bytes for a million documents


@given(ids=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=20, max_size=40))
def test_what_an_overlap_says_of_an_estimate(ids: list[tuple[bool, bool]]) -> None:
    """An overlap k of two full sketches of size n puts the estimate between 2k/n - 1 and k/n, as the text says."""
    size = 8
    a, b = ([i for i, held in enumerate(ids) if held[side]][:size] for side in (0, 1))
    if len(a) < size or len(b) < size:
        return
    values = np.array(a + b, np.uint64)
    by_smallest = Threshold("resemblance", 1, 2, is_count=False, size=size).rule
    shared, united = resemblance_parts(values, 0, size, size, 2 * size, by_smallest)
    overlap = len(set(a) & set(b))

    assert 2 * overlap / size - 1 <= shared / united <= overlap / size


def test_support_says_the_range_of_the_estimate() -> None:
    """A support of 85 of 100 means an estimate from 0.7 to 0.85, with 85 / 115 in the middle."""
    found = explain_support(85, 100)

    assert "from 0.700 to 0.850" in found.text()
    assert found.mark == pytest.approx(85 / 115)
    assert row_of(found.text(), "0.8")[2] == "83.9 %"


def test_the_defaults_are_explained() -> None:
    """With 200 ids, 119 common ids make a candidate for 0.7, all shingles decide; at 0.8 the error is 0.0283.

    Where sketches decide, 140 are needed, and 170 are enough.
    """
    text = explain_settings(load_config()).text()
    estimated = explain_settings(load_config(None, ["pairs.confirm=none"])).text()

    assert row_of(text, "0.8") == ["0.8", "0.0283", "175.4", "100 %"]
    assert "pairs: resemblance at least 0.7, exact: all shingles of the candidates are compared" in text
    assert "expected missed: at most 1 in 1,640" in text
    assert "119 in common at the least" in text
    assert row_of(estimated, "0.8") == ["0.8", "0.0283", "175.4", "99.97 %"]
    assert "140 in common at the least" in estimated
    assert "170 at the most" in estimated
    assert "35 words" in text  # 1000 x 0.3 / (1.7 x 5)


def test_a_profile_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """The settings of a file are explained, with the resemblance of `--at` in the table."""
    status = main(["explain", "--config", "romip2005", "--at", "0.72"])
    text = capsys.readouterr().out

    assert status == 0
    assert "at least 85 of 100 ids in common" in text
    assert row_of(text, "0.72")[2] == "20.8 %"


def test_a_share_is_not_a_count() -> None:
    """A share of the larger sketch loses no short document, so the text does not warn of that."""
    text = explain_settings(load_config(None, ["pairs.measure=overlap", "pairs.threshold=0.85"])).text()

    assert "at least 170 of 200 ids in common" in text
    assert "in no pair" not in text


def test_each_kind_is_explained_by_its_own_estimate() -> None:
    """Each kind has its own estimate: slots compare one by one, a modulus depends on length, words are exact."""
    slots = explain_settings(load_config(None, ["sketch.kind=min-perm", "sketch.size=100"])).text()
    sampled = explain_settings(load_config(None, ["sketch.kind=mod-m", "pairs.threshold=0.5"])).text()
    words = explain_settings(load_config("i-match")).text()

    assert row_of(slots, "0.5")[1:3] == ["0.0500", "50.0"]  # sqrt(1/4 / 100)
    assert row_of(sampled, "0.5") == ["0.5", "0.0785", "0.0245"]  # near sqrt(1/4 x 25 / N)
    assert "exact: nothing is sampled" in words
    assert row_of(words, "1")[1] == "97.2 %"  # 1 - 0.7^10
    for kind in KINDS:
        overlap = [] if kind in {"mod-m", "mod-pow2"} else ["pairs.measure=overlap"]
        modes = ["clusters.mode=partition"] if kind == "mod-pow2" else []
        assert (
            f"sketch: {kind}" in explain_settings(load_config(None, [f"sketch.kind={kind}", *overlap, *modes])).text()
        )


def test_bands_of_a_profile_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """The profile of 2017 is explained with its bands, rows and threshold."""
    status = main(["explain", "--config", "kshingle2017"])
    text = capsys.readouterr().out

    assert status == 0
    assert "20 bands of 5 rows" in text
    assert "(1/b)^(1/r) = 0.5493" in text


def test_a_figure_holds_the_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The PNG is an image with colour, and its curve is that of the formula."""
    path = tmp_path / "curve.png"
    status = main(["explain", "--bands", "20", "--rows", "5", "--png", str(path)])
    capsys.readouterr()
    from matplotlib.image import imread  # noqa: PLC0415 - half a second to load

    image = imread(path)
    (curve,) = explain_bands(20, 5).curves

    assert status == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert image.shape[0] > 400
    assert np.ptp(image[..., :3], axis=2).max() > 0.3
    assert np.allclose(curve.chances, candidate_probability(DRAWN, bands=20, rows=5))


def test_a_figure_replaces_nothing(tmp_path: Path) -> None:
    """An existing file is not overwritten by a figure."""
    path = tmp_path / "curve.png"
    path.write_text("mine")
    with pytest.raises(Exception, match="exists already"):
        draw_curves(explain_bands(2, 2).curves, 0.5, str(path))

    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bands", "20"], "--bands with --rows"),
        (["--bands", "2", "--size", "5"], "got --bands, --size"),
        (["--support", "9", "--size", "4"], "more than --size 4"),
        (["--support", "9", "--size", "100001"], "--size 100001: expected at most 100,000"),
        (["--bands", "1" + 30 * "0", "--rows", "2"], "expected at most 100,000"),
        (["--bands", "2", "--rows", "2", "--set", "sketch.size=9"], "either"),
        (["--set", "pairs.measure=overlap", "--set", "pairs.threshold=300"], "more than sketch.size 200"),
        (["--png", "curve.jpg"], ".png"),
        (["--set", "sketch.size=0"], "sketch.size"),
        (["--set", "sketch.kind=lexicon", "--png", "curve.png"], "no curve"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong use ends with status 2 and one line that names the mistake."""
    status = main(["explain", *arguments])
    captured = capsys.readouterr()

    assert status == 2
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--bands", "0", "--rows", "3"], ["--at", "1.5"]])
def test_numbers_out_of_range_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The parser refuses numbers out of range with status 2 and one line."""
    with pytest.raises(SystemExit) as ended:
        main(["explain", *arguments])

    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_sizes_that_grow_are_explained_for_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """For sizes that grow, the ids of a page count, not `sketch.size`; a threshold above all of them is refused."""
    growing = ["--set", "sketch.growth=linear", "--set", "pairs.measure=overlap", "--set", "pairs.threshold=85"]

    assert main(["explain", *growing, "--set", "sketch.size=50"]) == 0
    said = capsys.readouterr().out
    assert "Kept of a document's shingles: 40 of 1,000, 400 of 10,000, 4,000 of 100,000." in said
    assert "at least 85 of 400 ids in common" in said
    assert "3.20 GB of sketches" in said
    assert "(documents of 10,000 shingles)" in said
    assert main(["explain", *growing, "--set", "sketch.modulus=5000"]) == 2
    assert "pairs.threshold 85 is more than the 20 ids of a document of 100,000 shingles" in capsys.readouterr().err


def test_the_largest_sketches_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Sketches of 100,000 ids are explained without summing over all pairs of ids, which would take minutes."""
    assert main(["explain", "--set", "sketch.size=100000", "--set", "pairs.confirm=none"]) == 0
    assert "70000 in common at the least" in capsys.readouterr().out
