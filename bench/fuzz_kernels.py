"""Fuzz the kernels that read bytes of a record with numba's bounds checking, which slows them down by a half.

A kernel without it may read or write memory that is not its own. KERNELS is the list of all of them: each entry gives
damaged samples and random bytes to kernels that are called with such bytes; these call the other kernels.

`checked_fuzz` runs in a process of its own: numba decides about bounds checking when it compiles a kernel, so the
checked kernels need a cache of their own, and none may be taken from where the others lie.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench import fuzz_samples as made
from bench.fuzz_samples import TOKENS, mutate
from nddup.against.find_hits import find_hits, find_possible
from nddup.against.shingle_table import make_filter, make_known
from nddup.ground import kernels
from nddup.matching import lookups
from nddup.matching.lookups import hash_strings
from nddup.mining.fimi import read_fimi
from nddup.passages.tabulate import find_characters
from nddup.reading.json_lines import Keys, find_ends, read_lines
from nddup.reading.json_spread import as_lines
from nddup.reading.page_limits import count_parts, count_tags, most_attributes, trace_elements
from nddup.scanning.found import join_encoded, text_buffers
from nddup.sketching.recipe import Recipe, make_sketches
from nddup.sketching.rolling_hash import fingerprint_rows, hash_rows
from nddup.sketching.vocabulary import LexiconRule, TermCounts
from nddup.sketching.word_sketches import WordRule, WordSketcher

LINE = b'{"id": -12, "url": null, "text": "a\\n\\u00e9 \\ud83d\\ude00 b", "x": {"y": [1.5e-3, true, "z"], "text": 0}}'
SAMPLES = (
    made.PAGE,
    *made.HEADS,
    LINE,
    b"YWJj YW Jj ZA==",
    "a ПР, é 漢字 ไทย 👍 a\u0301 ".encode() * 5,
    b"1 2 3\n2 3\n",
)
OF_LINES = (b'"text": "', b'": ', b'", ', b"\\u", b"\\ud83d\\u", b"{", b"}", b"[", b"]", b"-0.5e", b"w" * 33)
PIECES = (*made.TAGS_OF_PAGES, *TOKENS, *OF_LINES)
BATCH = 50
"""Cases that a kernel of many texts reads in one call."""

FEW = 5_000
"""Cases that take less time than to optimise the kernels."""


def _pages(cases: Sequence[bytes]) -> None:
    for data in cases:
        page = np.frombuffer(data, np.uint8)
        most_attributes(page)
        count_tags(page)
        trace_elements(page)
        count_parts(data, is_xml=False)
        count_parts(data, is_xml=True)


def _texts(cases: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return text_buffers([data.decode("utf-8", "replace") for data in cases])


def _sketches(cases: Sequence[bytes]) -> None:
    texts = _texts(cases)
    for recipe in (Recipe(), Recipe(unit="char", length=8), Recipe(fingerprint="rabin")):
        make_sketches(*texts, recipe)
    fingerprint_rows(hash_rows(*texts))


def _words(cases: Sequence[bytes]) -> None:
    rule = LexiconRule(("english",), stems=True, stops=True, low="0", high="1")
    TermCounts(rule).add(*_texts(cases))
    WordSketcher(WordRule("i-match", rule), np.arange(3, dtype=np.uint64)).sketch(*_texts(cases))


def _against(cases: Sequence[bytes]) -> None:
    texts = _texts(cases)
    known = make_known(*_texts(cases[: BATCH // 2]), 2)
    find_hits(*texts, known, counts=True)
    find_possible(*texts, make_filter(known.keys), 2, counts=True)


def _lines(cases: Sequence[bytes]) -> None:
    for case in cases:
        line = case.replace(b"\n", b" ").decode("utf-8", "replace").encode()
        for data in (line, b'{"text": "' + line, b'{"' + line + b'"}', b'{"id": ' + line + b"}"):
            whole = np.frombuffer(data + b"\n", np.uint8)
            read_lines(whole, find_ends(whole), Keys("text", "id", "url"), 1 << 20)
            as_lines(b"[" + data)


def _strings(cases: Sequence[bytes]) -> None:
    hash_strings(pa.chunked_array([[data.decode("utf-8", "replace") for data in cases]]).combine_chunks())


def _transactions(cases: Sequence[bytes]) -> None:
    read_fimi([b"1 2\n" + b"\n".join(cases)])


def _passages(cases: Sequence[bytes]) -> None:
    texts = [data.decode("utf-8", "replace").encode() for data in cases]
    counts = np.diff(hash_rows(*join_encoded(texts)).offsets)
    whole = np.concatenate([[0], np.cumsum(counts > 0)])
    find_characters(texts, whole, np.zeros(whole[-1], np.int64), counts[counts > 0])


KERNELS: dict[str, Callable[[Sequence[bytes]], None]] = {
    "bounds of pages and XML": _pages,
    "tokens and sketches": _sketches,
    "words": _words,
    "shingles of another collection": _against,
    "lines of JSON": _lines,
    "ids of a repository": _strings,
    "transactions of a file": _transactions,
    "passages": _passages,
}
"""All that is compiled and given bytes of a record. Charsets, CSV, WARC and XML are read by libraries."""


def cases_of(seed: int) -> Iterator[bytes]:
    """Yield cases endlessly: damaged samples, pieces in any order, and random bytes."""
    choose = random.Random(seed)  # noqa: S311 - repeatable
    while True:
        way = choose.randrange(4)
        if way < 2:  # noqa: PLR2004 - half of the cases
            yield mutate(choose.choice(SAMPLES), SAMPLES, choose)[:2_000]
        elif way == 2:  # noqa: PLR2004
            yield b"".join(choose.choices(PIECES, k=choose.choice((1, 3, 10, 40))))[:2_000]
        else:
            yield choose.randbytes(choose.choice((0, 1, 2, 5, 20, 100)))


def fuzz_kernels(cases: int, seed: int, entries: Sequence[str] = ()) -> list[str]:
    """Give `cases` cases to some entries of KERNELS, or all; return the kernels that were called, as `module.name`.

    Raises:
        RuntimeError: naming the entry and the first case of the call that fails.
    """
    source = cases_of(seed)
    for first in range(0, cases, BATCH):
        some = list(islice(source, BATCH))
        for name in entries or KERNELS:
            try:
                KERNELS[name](some)
            except Exception as error:
                raise RuntimeError(f"case {first} of seed {seed}, {name}: {error!r}") from error
    return sorted(
        f"{name}.{member}"
        for name, module in list(sys.modules.items())
        if name.startswith("nddup.")
        for member, value in vars(module).items()
        if is_kernel(value) and value.py_func.__module__ == name and value.signatures
    )


def is_kernel(value: object) -> bool:
    """Return whether a value of a module is compiled code."""
    return hasattr(value, "py_func")


def kernels_of_bytes() -> set[str]:
    """Return the kernels that take bytes as `data`, of the modules loaded, as `module.name`."""
    return {
        f"{name}.{member}"
        for name, module in list(sys.modules.items())
        if name.startswith("nddup.")
        for member, value in vars(module).items()
        if is_kernel(value) and value.py_func.__module__ == name
        if "uint8" in str(get_type_hints(value.py_func).get("data", ""))
    }


def checked_fuzz(cases: int, seed: int, cache: Path, entries: Sequence[str] = ()) -> list[str]:
    """Do as `fuzz_kernels`, with bounds checking, in another process; `cache` is a folder for the checked kernels.

    Cost: 45 s of CPU time to compile the kernels of all entries; few cases take them less optimised, in 30 s.

    Raises:
        RuntimeError: with the last line of the error of the process.
    """
    checked = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    checked |= {"NUMBA_OPT": "0"} if cases < FEW else {}
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(cases), str(seed), *entries],
        env=checked,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else f"status {done.returncode}")
    called: list[str] = json.loads(done.stdout)
    return called


def require_checks() -> None:
    """Take kernels from the first folder alone, and assert that one which reads beyond its bytes is stopped."""
    everywhere = kernels._list_folders  # noqa: SLF001 - those compiled without the checks lie beside the sources
    kernels._list_folders = lambda file, given: everywhere(file, given)[:1]  # type: ignore[assignment] # noqa: SLF001
    try:
        lookups._hash_strings(np.zeros(2, np.uint8), np.array([0, 3]))  # noqa: SLF001
    except IndexError:
        return
    raise RuntimeError("a kernel was not checked")


if __name__ == "__main__":
    require_checks()
    print(json.dumps(fuzz_kernels(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))
