"""Run every `nddup` command of README and docs by an installed nddup, each page in a folder of its own.

    build/wheel/env/bin/python scripts/try_pages.py      a line for each page; exit status 1 if a command failed
    … scripts/try_pages.py README.md                            of this page alone

The folder holds small files of the names that pages use, and the run out/run. Commands for a cluster or for files
elsewhere are left out (`ELSEWHERE`); where a page writes to one folder twice, the second command replaces it.
"""

import csv
import gzip
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
NDDUP = str(Path(sys.executable).with_name("nddup"))
ELSEWHERE = ("://", "--master", "--engine spark", "spark.", "…")
ADDRESS = "http://example.org/"
CODE = re.compile(r"^```sh\n(.*?)^```|((?:^    .*\n)+)", re.MULTILINE | re.DOTALL)
FOUND = 3
"""Exit status of --exit-code."""


def commands_of(page: Path) -> Iterator[list[str]]:
    """Yield the complete commands of a page that run on this machine, without the program's name."""
    for fenced, indented in CODE.findall(page.read_text(encoding="utf-8")):
        lines = fenced or re.sub(r"^    ", "", indented, flags=re.MULTILINE)
        text = re.sub(r"\\\n\s*", " ", lines)
        for line in text.splitlines():
            command = re.split(r"\s{3,}|\s#\s| > ", line)[0]
            is_here = not any(word in command.replace(ADDRESS, "") for word in ELSEWHERE)
            if re.match(r"nddup [a-z]+( |$)", command) and not command.startswith("nddup runs") and is_here:
                yield shlex.split(command)[1:]


def make_rows(first: int = 0) -> list[dict[str, object]]:
    """Return twelve records; every third is a copy of the one before it with one word changed."""
    drawn, rows = random.Random(5), list[dict[str, object]]()  # noqa: S311 - texts
    for number in range(first, first + 12):
        words = [f"w{drawn.randrange(900)}" for _ in range(120)]
        if number % 3 == 2:  # noqa: PLR2004 - every third
            words = str(rows[-1]["text"]).split()
            words[7] = "changed"
        text = " ".join(words)
        url = f"{ADDRESS}{number + 15}"
        rows.append({
            "url": url, "id": url, "qid": f"q{number}", "text": text, "title": "", "body": text, "score": number,
            "article": {"body": text}, "section": f"s{number % 2}", "lang": "en", "license": f"l{number % 4}",
            "date": f"2026-01-{number % 28 + 1:02}", "source": ("wiki", "news", "cc")[number % 3],
            "question": text[:200], "answer": text[200:],
        })  # fmt: skip
    return rows


def write_lines(path: str, rows: list[dict[str, object]]) -> None:
    """Write JSON lines."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def capture(number: int, date: str, text: str) -> bytes:
    """Return a record of a WARC file."""
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>{text}</body></html>".encode()
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nWARC-Date: {date}T00:00:00Z\r\n"
        f"WARC-Target-URI: {ADDRESS}\r\nContent-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n")


def write_files(page: str) -> None:
    """Write the files that pages name into the current folder."""
    rows, later = make_rows(), make_rows(60)
    folders = ["train", "corpus", "newspapers", "shards", "crawl/2026-11-23", "crawl/2026-11-26"]
    folders += ["pages"] if page != "grow-a-repository.md" else []  # there it is the name of the repository
    for folder in folders:
        write_lines(f"{folder}/wiki-1.jsonl", rows)
    for name in ("news", "texts", "test", "qa", "benchmark", "corrected"):
        write_lines(f"{name}.jsonl", rows)
    write_lines("week2/b.jsonl", later)
    write_lines("crawl/2026-11-27/b.jsonl", later)
    with Path("pages.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["url", "title", "body"], extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    Path("mirror").mkdir()
    Path("mirror/a.html").write_text(f"<html><body><p>{rows[0]['text']}</p></body></html>")
    shutil.copy("mirror/a.html", "new.html")
    pages = [f'<page id="{at}"><title>t</title><body>{row["text"]}</body></page>' for at, row in enumerate(rows)]
    Path("dump.xml").write_text(f"<pages>{''.join(pages)}</pages>")
    dates = enumerate(("2026-01-01", "2026-01-02", "2026-02-01"))
    Path("crawl.warc.gz").write_bytes(b"".join(capture(at, date, str(rows[at]["text"])) for at, date in dates))
    Path("decisions.csv").write_text(f"doc_id,decision\n{ADDRESS}15,kept\n")
    Path("published.csv").write_text(f"{ADDRESS}15,test\n")
    Path("withdrawn.txt").write_text(f"{ADDRESS}15\n")
    Path("truth.csv").write_text(f"{ADDRESS}16,{ADDRESS}17\n")
    shutil.copytree(ROOT / "samples", "samples")


def run(arguments: list[str]) -> str:
    """Run a command; return what it printed, if it failed after its exit status."""
    output = next((b for a, b in pairwise(arguments) if a in ("-o", "--output")), None)
    is_ours = output == "out" or ("--resume" not in arguments and "add" not in arguments)  # out holds other runs
    if output and Path(output).exists() and is_ours:
        shutil.rmtree(output) if Path(output).is_dir() else Path(output).unlink()
    done = subprocess.run([NDDUP, *arguments], capture_output=True, text=True, check=False)
    is_good = done.returncode == 0 or (done.returncode == FOUND and "--exit-code" in arguments)
    return done.stdout if is_good else f"\n{done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}"


def prepare() -> dict[str, str]:
    """Make out/run, out/demo and judgements; return what stands for the names that a reader replaces."""
    run(["run", "news.jsonl", "--output", "out/run", "--quiet"])
    run(["run", "samples/debdocs", "--output", "out/demo", "--quiet"])
    rows = run(["show", "out/run", "--risky", "5", "--csv"])
    Path("judgements.csv").write_text(rows.replace(",,", ",better,", 1))
    cluster = json.loads(run(["show", "out/run", "--json"]))["clusters"][0]["cluster_id"]
    ids = {"ID": f"{ADDRESS}15", "a": f"{ADDRESS}16", "b": f"{ADDRESS}17"}
    return {"RUN": "out/run", "FILE": "truth.csv", "0123456789abcdef": cluster, **ids}


def main() -> int:
    """Run the commands of all pages."""
    failed = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        is_wanted = page.name in sys.argv[1:] if sys.argv[1:] else page.name != "reference.md"
        commands = list(commands_of(page)) if is_wanted else []
        if not commands:
            continue
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            write_files(page.name)
            named = prepare()
            wrong = [
                f"  nddup {shlex.join(given)}{printed}"
                for given in ([named.get(word, word) for word in command] for command in commands)
                if (printed := run(given)).startswith("\n")
            ]
            os.chdir(ROOT)
        failed += len(wrong)
        sys.stdout.write(f"{page.relative_to(ROOT)}: {len(commands) - len(wrong)} of {len(commands)} commands\n")
        sys.stdout.writelines(f"{text}\n" for text in wrong)
        sys.stdout.flush()
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
