"""The real pages of debdocs-dev as ROMIP XML and as texts, and the exact pairs among them."""

import argparse
import base64
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from nddup.reading.formats import FORMATS
from nddup.reading.records import Record, record_text
from nddup.sketching.min_s import sketch_texts

HEAD = '<?xml version="1.0"?>\n<romip:dataset xmlns:romip="http://www.romip.ru/data/common">\n'
SHORT = 50
"""Least tokens of a document in the file of exact pairs."""
SMALL_SHARE = 8
"""A small run takes one page key in SMALL_SHARE, with all its versions."""

Pair = tuple[int, int]


def load_pages(options: argparse.Namespace) -> pd.DataFrame:
    """Return doc_id, url, page_key, n_tokens and html (bytes) of the pages, all or a small share of them."""
    columns = ["doc_id", "url", "page_key", "n_tokens", "html"]
    pages = pq.read_table(options.data / "debdocs-dev" / "docs.parquet", columns=columns).to_pandas()
    if options.small:
        pages = pages[pd.util.hash_array(pages["page_key"].to_numpy()) % SMALL_SHARE == 0]
    return pages.reset_index(drop=True)


def load_truth(options: argparse.Namespace, pages: pd.DataFrame) -> dict[Pair, float]:
    """Return the exact resemblance of every pair of these pages at 0.7 or more, by (smaller, larger) doc_id."""
    pairs = pd.read_csv(options.data / "debdocs-dev" / "pairs_w5_j070.tsv.gz", sep="\t")
    known = set(pages["doc_id"].tolist())
    rows = zip(pairs["id_a"].tolist(), pairs["id_b"].tolist(), pairs["jaccard"].tolist(), strict=True)
    return {(min(a, b), max(a, b)): jaccard for a, b, jaccard in rows if a in known and b in known}


def romip_records(pages: Iterable[tuple[object, str, bytes]]) -> Iterator[str]:
    """Yield each page (id, url, html) as a record of a ROMIP collection."""
    for doc_id, url, html in pages:
        content = base64.encodebytes(html).decode("ascii")
        yield (
            f"<document>\n<docID>{doc_id}</docID>\n<docURL>{escape(url)}</docURL>\n"
            f'<content encoding="base64">\n{content}</content>\n</document>\n'
        )


def write_romip(path: Path, pages: pd.DataFrame) -> None:
    """Write the pages as one collection file."""
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD + "<collection>debdocs</collection>\n")
        file.writelines(romip_records(zip(pages["doc_id"], pages["url"], pages["html"], strict=True)))
        file.write("</romip:dataset>\n")


def texts_of(pages: pd.DataFrame) -> list[str]:
    """Return the text of each page, as a run extracts it."""
    is_markup = FORMATS["romip"].is_markup
    return [record_text(Record(None, None, (html,), is_markup)) for html in pages["html"]]


def shingles_of(texts: list[str], length: int = 5) -> list[np.ndarray]:
    """Return all distinct shingles of each text as ascending ids, by sketches of unlimited size."""
    data = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in data])]).astype(np.int64)
    made = sketch_texts(np.frombuffer(b"".join(data), np.uint8), offsets, length=length, size=1 << 40)
    return np.split(made.ids, made.offsets[1:-1])


def jaccard(a: np.ndarray, b: np.ndarray) -> float:
    """Return |A and B| / |A or B| of two ascending arrays of distinct ids; 0 if both are empty."""
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / max(len(a) + len(b) - common, 1)


def reworded(text: str, copy: int) -> str:
    """Return the text with each word changed in a way of its copy, so that copies have no shingle in common."""
    return re.sub(r"\w+", lambda word: word[0] + chr(ord("a") + copy % 26) * (1 + copy // 26), text) if copy else text
