"""The collections of the experiments, each cut into 24 files: debdocs-dev, its long pages, ruweb, a mix, or the user's.

The pages of debdocs-dev are in the order of their page keys, so that the versions of a page are in one file or in
neighbours, as the pages of one site are in a crawl. `debdocs-170` holds those of them with at least 170 tokens: enough
for 150 shingles of 10 or 20 words. `mix-170` holds texts of that length from two packages on PyPI: the licences that
ScanCode knows, and the manual of Django in two versions. The pages of ruweb keep their order. A folder of the user,
which may hold any input of a run, becomes JSON lines of its texts, in the order of its files.
"""

import argparse
import bz2
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd

from bench.debdocs import HEAD, load_pages, romip_records
from bench.papers.runs import make_run
from nddup.checking.compared_texts import read_whole
from nddup.results.opening import open_here

FILES = 24
GIVEN = "given"
"""The name, in tables, of the collection of the user."""
SUBSETS = (3, 6, 12, 24)
"""Sizes of the subsets, in files from the first: the papers' 1-3, 1-6, 1-12 and 1-24."""
LEAST = 170
"""Least tokens of a long page: enough for 150 shingles of 20 words."""
LICENCES, MANUAL = "licensedcode-data==32.1.0", "Django"
"""The licences (a list under CC-BY-4.0 of texts of their authors) and the manual (BSD-3-Clause) of the mix."""
VERSIONS = ("4.2.16", "5.2")

_RECORD = re.compile(rb"<document>.*?</document>", re.DOTALL)


def debdocs(options: argparse.Namespace, folder: Path, *, least: int = 0) -> list[Path]:
    """Return the files of the pages of debdocs-dev with so many tokens, which are written if they are missing."""
    target = folder / (f"debdocs-{least}" if least else "debdocs")
    if not (target / "_COMPLETE").exists():
        pages = in_order(options)
        pages = pages[pages["n_tokens"] >= least]
        records = list(romip_records(zip(pages["doc_id"], pages["url"], pages["html"], strict=True)))
        _write_parts(target, records)
    return sorted(target.glob("*.xml"))


def in_order(options: argparse.Namespace) -> pd.DataFrame:
    """Return the pages of debdocs-dev in the order of the files."""
    return load_pages(options).sort_values(["page_key", "doc_id"], kind="stable")


def ruweb(options: argparse.Namespace, folder: Path) -> list[Path]:
    """Return the files of ruweb, which are written with unchanged records if they are missing."""
    target = folder / "ruweb"
    if not (target / "_COMPLETE").exists():
        parts = [bz2.decompress(path.read_bytes()) for path in sorted((options.data / "ruweb").glob("ruweb.xml.*.bz2"))]
        records = [record.decode() for part in parts for record in _RECORD.findall(part)]
        _write_parts(target, records[:: 8 if options.small else 1])
    return sorted(target.glob("*.xml"))


def given(source: Path, folder: Path) -> list[Path]:
    """Return the files of the user's collection: the text of every document, as JSON lines."""
    target = folder / GIVEN
    if not (target / "_COMPLETE").exists():
        make_run(folder / "given-run", [str(source)], None, "clusters.mode=none")
        run = open_here(str(folder / "given-run")).run
        ids = [row["doc_id"] for row in run.sql("SELECT doc_id FROM documents ORDER BY doc_key").to_pylist()]
        texts = read_whole(run, set(ids))
        _write_texts(target, [(name, texts[name]) for name in ids])
    return sorted(target.glob("*.jsonl"))


def mixed(options: argparse.Namespace, folder: Path) -> list[Path]:
    """Return the files of the mix, whose packages pip downloads if they are missing."""
    target = folder / "mix-170"
    if not (target / "_COMPLETE").exists():
        packages = folder / "packages"
        for version in VERSIONS:
            _download(packages, f"{MANUAL}=={version}", "--no-binary", MANUAL)
        _download(packages, LICENCES)
        texts = [*_licences(packages), *_manuals(packages)]
        long = [(name, text) for name, text in texts if len(re.findall(r"\w+", text)) >= LEAST]
        _write_texts(target, long[:: 8 if options.small else 1])
    return sorted(target.glob("*.jsonl"))


def _download(packages: Path, requirement: str, *flags: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *flags, "--dest", str(packages)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"papers: pip cannot download {requirement}, of which mix-170 is made: {done.stderr.strip()[-200:]}")


def _licences(packages: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the licences, without the YAML that describes each of them."""
    (wheel,) = packages.glob("licensedcode_data-*.whl")
    with ZipFile(wheel) as files:
        for name in sorted(files.namelist()):
            if name.startswith("licensedcode/data/licenses/") and name.endswith(".LICENSE"):
                text = files.read(name).decode("utf-8")
                yield Path(name).stem, re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)


def _manuals(packages: Path) -> list[tuple[str, str]]:
    """Return the names and texts of the chapters, with the versions of one beside each other."""
    found = []
    for path in sorted(packages.glob("[Dd]jango-*.tar.gz")):
        with tarfile.open(path) as files:
            for member in files:
                version, _, chapter = member.name.partition("/docs/")
                if chapter.endswith(".txt") and (content := files.extractfile(member)):
                    found.append(((chapter, version), content.read().decode("utf-8")))
    return [(f"{version}/{chapter}", text) for (chapter, version), text in sorted(found)]


def _write_texts(target: Path, texts: Sequence[tuple[str, str]]) -> None:
    """Write the texts of a collection as JSON lines, with their names."""
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in texts]
    target.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(len(lines)), FILES), 1):
        (target / f"pages.{number:02}.jsonl").write_text("".join(lines[place] for place in part.tolist()))
    (target / "_COMPLETE").touch()


def texts_in(files: Sequence[Path]) -> list[str]:
    """Return the texts of files of JSON lines, in order."""
    return [json.loads(line)["text"] for path in files for line in path.read_text(encoding="utf-8").splitlines()]


def first(files: Sequence[Path], count: int) -> list[str]:
    """Return the first files of a collection, as a run takes them."""
    return [str(path) for path in files[:count]]


def _write_parts(target: Path, records: Sequence[str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(len(records)), FILES), 1):
        _write(target / f"pages.{number:02}.xml", (records[place] for place in part.tolist()))
    (target / "_COMPLETE").touch()


def _write(path: Path, records: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD + "<collection>experiments</collection>\n")
        file.writelines(records)
        file.write("</romip:dataset>\n")
