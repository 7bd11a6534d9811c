"""Make the pages of `nddup demo` again from samples/debdocs: python scripts/make_demo.py

Pages of Boost alone, so that one licence covers them: families of near-duplicates whole, in the order of their first
page, and pages that are like no other. The same sample gives the same file.
"""

import base64
import csv
import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).absolute().parents[1]
SAMPLE, DEMO = ROOT / "samples" / "debdocs", ROOT / "nddup" / "demo"
DOCUMENT = re.compile(rb"<docID>(\d+)</docID>\n<docURL>([^<]+)</docURL>\n<content[^>]*>([^<]+)<")
IN_FAMILIES, ALONE = 110, 40
"""About how many pages of each sort are taken."""

LARGEST = 12
"""Pages of the largest family taken."""


def read_pages() -> dict[str, tuple[str, bytes]]:
    """Return the name and the bytes of each page of Boost, by its id in the sample."""
    pages = {}
    for path in sorted(SAMPLE.glob("*.xml*")):
        data = path.read_bytes()
        for number, url, page in DOCUMENT.findall(gzip.decompress(data) if path.suffix == ".gz" else data):
            name = url.decode().removeprefix("http://docs.example/lib").partition("-doc/usr/share/doc/")
            if name[1] and name[0].startswith("boost"):
                pages[number.decode()] = (f"{name[0]}/{name[2].partition('/')[2]}", base64.b64decode(page))
    return pages


def list_families(pages: dict[str, tuple[str, bytes]]) -> list[list[str]]:
    """Return the families of the list of true pairs, each with its ids in order."""
    family = {page: {page} for page in pages}
    with (SAMPLE.with_name("debdocs_truth_w5_j070.tsv")).open() as file:
        for pair in csv.DictReader(file, delimiter="\t"):
            if pair["id_a"] in pages and pair["id_b"] in pages:
                joined = family[pair["id_a"]] | family[pair["id_b"]]
                family.update(dict.fromkeys(joined, joined))
    found = defaultdict(list)
    for page in sorted(pages, key=int):
        found[min(family[page], key=int)].append(page)
    return list(found.values())


def main() -> None:
    """Choose the pages, and write them as JSON lines."""
    pages = read_pages()
    families = list_families(pages)
    chosen: list[str] = []
    for family in families:
        if 1 < len(family) <= LARGEST and len(chosen) < IN_FAMILIES:
            chosen += family
    chosen += [family[0] for family in families if len(family) == 1][:ALONE]
    lines = [
        json.dumps({"id": pages[page][0], "text": pages[page][1].decode("utf-8", "replace")}, ensure_ascii=False)
        for page in sorted(chosen, key=int)
    ]
    data = gzip.compress(("\n".join(lines) + "\n").encode(), compresslevel=9, mtime=0)
    DEMO.mkdir(exist_ok=True)
    (DEMO / "boost.jsonl.gz").write_bytes(data)
    print(f"{len(lines)} pages, {len(data):,} bytes")


if __name__ == "__main__":
    main()
