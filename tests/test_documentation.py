"""The documentation agrees with the code: the reference is generated from it, and settings, links and paths exist."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from nddup.cli import build_parser, main
from nddup.commands import COMMANDS
from nddup.settings.schema import Config
from nddup.tables import RESULTS
from scripts.make_reference import make_index, make_reference

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST_WORDS = 34_000
MOST_OF_A_HOWTO = {"read-any-collection.md": 1_150}
"""Words of a how-to that may have more than 900: a page of formats, to look things up."""
SECTIONS = "input|shingle|sketch|pairs|clusters|keep|output|lexicon|against|passages"
KEY = re.compile(rf"(?<![\w/.-])({SECTIONS})\.([a-z_]+)(?![\w./])")
FILES = {"json", "csv", "md", "py", "txt", "xml"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_reference_is_made_from_the_code() -> None:
    """docs/reference.md is what `make reference` writes."""
    assert (ROOT / "docs" / "reference.md").read_text(encoding="utf-8") == make_reference(), "run make reference"
    assert (ROOT / "llms.txt").read_text(encoding="utf-8") == make_index(), "run make reference"


def test_the_documentation_stays_short() -> None:
    """README and docs have no more words than `cat README.md $(find docs -name '*.md') | wc -w` may count."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]

    assert sum(len(path.read_bytes().split()) for path in pages) <= MOST_WORDS, "say it once, and link"
    words = {path.name: len(path.read_bytes().split()) for path in (ROOT / "docs" / "howto").glob("*.md")}
    assert [name for name, count in words.items() if count > MOST_OF_A_HOWTO.get(name, 900)] == []


def test_every_column_has_a_meaning() -> None:
    """The declaration of each table describes its rows and each of its columns."""
    silent = [
        f"{table.name}.{column.name}" for table in RESULTS.values() for column in table.columns if not column.meaning
    ]

    assert silent == []
    assert all(table.meaning and table.doing for table in RESULTS.values())


def test_settings_that_pages_name_exist() -> None:
    """Every `section.key` on a page is a setting, unless it is a file name."""
    known = {(name, key) for name, field in Config.model_fields.items()
             for key in getattr(field.annotation, "model_fields", {})}  # fmt: skip

    named = {(path, *key) for path in PAGES for key in KEY.findall(path.read_text(encoding="utf-8"))}
    assert [name for name in named if name[1:] not in known and name[2] not in FILES] == []


def test_links_lead_somewhere() -> None:
    """Every file and heading that a page links to exists."""
    links = (
        (path, link) for path in PAGES for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    )

    assert [
        (name_of(path), link) for path, link in links if "://" not in link and not leads_somewhere(path, link)
    ] == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Return whether the file and the heading that a page links to exist."""
    file, _, heading = link.partition("#")
    linked = (page.parent / file) if file else page
    if not linked.exists() or not heading:
        return linked.exists()
    titles = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
    return heading in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_paths_and_modules_that_pages_name_exist() -> None:
    """Every path in the checkout and every `nddup.room.module` that a page names exists."""
    lost = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        files = re.findall(r"(?<![\w/.:-])((?:bench|conf|docs|jobs|nddup|samples|scripts|tests)/[\w./-]*\w)", text)
        modules = re.findall(r"(?<![\w/-])nddup\.([a-z_]+(?:\.[a-z_]+)+)", text)
        lost += [(name_of(page), name) for name in files if not (ROOT / name).exists()]
        lost += [(name_of(page), name) for name in modules if not is_module(ROOT / "nddup" / Path(*name.split(".")))]

    assert lost == []


def is_module(path: Path) -> bool:
    """Return whether the path is a package or a module."""
    return path.is_dir() or path.with_suffix(".py").exists()


def commands_of(path: Path) -> list[list[str]]:
    """Return the `nddup` commands in the `sh` blocks of a page, each without the program name."""
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line.partition(" > ")[0], comments=True)[1:] for line in lines if line.startswith("nddup ")]


def test_commands_that_pages_show_are_commands() -> None:
    """Every complete `nddup …` command in a code block of a page can be parsed."""
    parser = build_parser()
    for path in PAGES:
        indented = re.findall(r"^    (?:\S*/)?nddup (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        plain = [re.split(r"\s{2,}(?=\w)", line)[0] for line in indented if "…" not in line and "\\" not in line]
        shown = [shlex.split(line.partition(" > ")[0], comments=True) for line in plain]
        for arguments in [*commands_of(path), *shown]:
            if arguments and arguments[0] in COMMANDS:
                parser.parse_args(arguments)  # prints what is wrong, and ends the test


def test_the_tutorial_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The commands of the tutorial succeed in order, starting from the samples alone, and print what it says."""
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    shown: dict[str, str] = {}
    for arguments in commands_of(ROOT / "docs" / "tutorial.md"):
        status = main([f"{tmp_path}/{word}" if word.startswith(("samples/", "out/")) else word for word in arguments])
        printed = capsys.readouterr()
        assert status == 0, f"nddup {shlex.join(arguments)}: {printed.err}"
        shown[" ".join(arguments[:2])] = printed.out

    assert "every promise holds" in shown["check out/second"]
    assert "unique to run" in shown["evaluate out/first"]
    assert recall(shown["evaluate out/first"]) > 0.99
    assert recall(shown["evaluate out/second"]) < 0.8


def recall(table: str) -> float:
    """Return the recall of pairs in a printed table."""
    [line] = [line for line in table.splitlines() if line.split()[:1] == ["recall"] and "of" not in line]
    return float(line.split()[1])
