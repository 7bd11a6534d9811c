"""Make samples/debdocs: real HTML pages with natural near-duplicates, small enough to live in the repository.

    python scripts/make_sample.py docs.parquet pairs_w5_j070.tsv.gz samples/debdocs

`docs.parquet` holds one page a row: doc_id, family, lang, url, n_bytes, n_tokens, html (raw bytes). The pairs
file holds every pair of pages of at least 50 tokens whose exact resemblance is 0.7 or more. Families, that is
connected components of those pairs, are taken whole, so a page's near-duplicates come with it. Shorter pages
are in no pair; their twins in the other package version, which have the same key, come with them. The same
input gives the same files.
"""

import argparse
import base64
import gzip
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

HEAD = '<?xml version="1.0"?>\n<romip:dataset xmlns:romip="http://www.romip.ru/data/common">\n'
FILES = ("debdocs.0.xml", "debdocs.1.xml", "debdocs.2.xml.gz")
SHORT = 50  # tokens; shorter pages are not in the pairs file


@dataclass(frozen=True)
class Part:
    """Families to take: from these sources, with `sizes` pages, until the budget of raw bytes is used up."""

    sources: tuple[str, ...]
    sizes: tuple[int, int]
    page_bytes: int
    budget: int
    short: bool = False


PARTS = (
    Part(("boost",), (10, 20), 9_000, 250_000),
    Part(("boost",), (3, 9), 9_000, 850_000),
    Part(("boost",), (2, 2), 7_000, 950_000),
    Part(("boost",), (1, 1), 9_000, 110_000),
    Part(("boost",), (1, 1), 9_000, 150_000, short=True),
    Part(("llvm",), (10, 34), 9_000, 330_000),
    Part(("llvm",), (2, 9), 9_000, 160_000),
    Part(("llvm", "clang"), (1, 1), 14_000, 60_000),
    Part(("clang",), (2, 9), 16_000, 120_000),
    Part(("libomp",), (2, 9), 8_000, 40_000),
    Part(("libomp", "clang"), (1, 1), 9_000, 40_000, short=True),
    Part(("apache2-doc",), (2, 4), 40_000, 110_000),
)
LANGUAGE_BUDGET = 26_000  # Apache httpd pages without near-duplicates, smallest first, of each language


def components(documents: pd.DataFrame, pairs: pd.DataFrame) -> np.ndarray:
    """Return the number of each document's family, its connected component in the graph of the pairs."""
    position = pd.Series(np.arange(len(documents)), index=documents["doc_id"])
    rows, columns = position.loc[pairs["id_a"]].to_numpy(), position.loc[pairs["id_b"]].to_numpy()
    edges = coo_matrix((np.ones(len(pairs)), (rows, columns)), shape=(len(documents), len(documents)))
    return np.asarray(connected_components(edges, directed=False)[1])


def shuffled(key: str) -> str:
    """Return a fixed pseudo-random sorting key."""
    return hashlib.sha256(key.encode()).hexdigest()


def choose(documents: pd.DataFrame) -> pd.DataFrame:
    """Return the chosen rows of `documents` (which has a column `component`), ascending by doc_id."""
    families = documents.groupby("component").agg(
        pages=("doc_id", "size"),
        source=("family", "min"),
        key=("page_key", "min"),
        total=("n_bytes", "sum"),
        largest=("n_bytes", "max"),
        short=("n_tokens", lambda tokens: tokens.max() < SHORT),
    )
    # Sort by key, so that families with the same key, which no pair joins, are adjacent.
    families["order"] = families["key"].map(shuffled)
    families = families.sort_values("order")
    chosen: set[int] = set()
    for part in PARTS:
        fits = families[
            families["source"].isin(part.sources)
            & families["pages"].between(*part.sizes)
            & (families["largest"] <= part.page_bytes)
            & (families["short"] == part.short)
        ]
        left = part.budget
        for component, total in zip(fits.index, fits["total"], strict=True):
            if total <= left:
                chosen.add(int(component))
                left -= total
    apache = documents[(documents["family"] == "apache2-doc") & (documents["lang"] != "")]
    alone = apache[apache["component"].map(families["pages"]) == 1].sort_values(["n_bytes", "doc_id"])
    for _, pages in alone.groupby("lang"):
        chosen |= set(pages[pages["n_bytes"].cumsum() <= LANGUAGE_BUDGET]["component"])
    return documents[documents["component"].isin(chosen)].sort_values("doc_id")


def collection(pages: Iterable[tuple[int, str, bytes]]) -> bytes:
    """Return one ROMIP collection of (id, url, raw page)."""
    parts = [HEAD, "<collection>debdocs</collection>\n"]
    for doc_id, url, html in pages:
        content = base64.encodebytes(html).decode("ascii")
        parts.append(
            f"<document>\n<docID>{doc_id}</docID>\n<docURL>{escape(url)}</docURL>\n"
            f'<content encoding="base64">\n{content}</content>\n</document>\n'
        )
    parts.append("</romip:dataset>\n")
    return "".join(parts).encode("utf-8")


def write(path: Path, data: bytes) -> None:
    """Write a file; if its name ends in .gz, compress it, without a time stamp or name inside."""
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=9, mtime=0)
    path.write_bytes(data)


def main() -> None:
    """Choose the pages, write the collection files and the pairs among them, and print the counts."""
    parser = argparse.ArgumentParser(description="Make the sample collection.")
    parser.add_argument("documents", type=Path, help="docs.parquet")
    parser.add_argument("pairs", type=Path, help="pairs_w5_j070.tsv.gz")
    parser.add_argument("output", type=Path, help="folder to write to")
    arguments = parser.parse_args()

    documents = pd.read_parquet(arguments.documents)
    pairs = pd.read_csv(arguments.pairs, sep="\t", dtype={"jaccard": str})
    documents["component"] = components(documents, pairs)
    chosen = choose(documents)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(FILES):
        rows = chosen.iloc[number :: len(FILES)]
        pages = zip(rows["doc_id"], rows["url"], rows["html"], strict=True)
        write(arguments.output / name, collection(pages))
    ids = set(chosen["doc_id"])
    truth = pairs[pairs["id_a"].isin(ids) & pairs["id_b"].isin(ids)].sort_values(["id_a", "id_b"])
    truth.to_csv(
        arguments.output.with_name(f"{arguments.output.name}_truth_w5_j070.tsv"),
        sep="\t",
        index=False,
        lineterminator="\n",
    )

    size = sum(path.stat().st_size for path in arguments.output.iterdir())
    in_pairs = len(set(truth["id_a"]) | set(truth["id_b"]))
    print(f"pages {len(chosen)}, pairs {len(truth)}, pages in a pair {in_pairs}, bytes in all {size}")
    print(f"pages under {SHORT} tokens {(chosen['n_tokens'] < SHORT).sum()}")
    print(chosen.groupby(["package", "deb_version", "lang"]).size().to_string())
    print(chosen["charset"].value_counts().to_string())


if __name__ == "__main__":
    main()
