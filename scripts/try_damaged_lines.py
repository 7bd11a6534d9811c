"""Read damaged lines of JSON by the compiled reader, with each index compared with its array.

    python -m scripts.try_damaged_lines [--lines N] [--seed N] [--interpreted]

Compiled code does not look whether an index lies in its array. Here it does: the reader is compiled anew for that,
or interpreted, which needs no compiler and takes 1,000 times as long a line.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator

BLOCK = 20_000
"""Lines read together."""

PIECES = (
    b'"', b"\\", b"\\u", b"\\ud83d", b"\\ude00", b"\\u00e9", b"{", b"}", b"[", b"]", b":", b",", b"-", b"1e", b".5",
    b"tr", b"null", b"\x00", b"\xff", b"\xc3", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b" ", b"\t", b"\r",
    b'"text"', b'"id"', b"[" * 61, b"0" * 40, b"\\" * 33, b"x" * 31, b"x" * 32, b"x" * 33,
)  # fmt: skip
"""What is put into lines."""


def damaged_lines(count: int, seed: int) -> Iterator[bytes]:
    """Yield lines without their ends: objects, most of them damaged in one to four places."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for number in range(count):
        text = "".join(chance.choice(("a", "é", "\n", '"', "\\", "日", "😀", " ")) for _ in range(chance.randrange(70)))
        values = {"id": chance.choice((number, str(number), "é", None, [1], 1.5)), "text": text, "url": "http://x/"}
        line = bytearray(json.dumps(values, ensure_ascii=chance.random() < 0.5).encode())  # noqa: PLR2004
        for _ in range(chance.randrange(5)):
            at = chance.randrange(len(line) + 1)
            how = chance.randrange(4)
            if how == 0:
                line[at:at] = chance.choice(PIECES)
            elif how == 1:
                del line[at : at + chance.randrange(1, 9)]
            elif how == 2:  # noqa: PLR2004
                del line[at:]
            elif at < len(line):
                line[at] = chance.randrange(256)
        yield bytes(line).replace(b"\n", b" ")


def require_comparison() -> None:
    """Raise unless a kernel that is given a wrong index ends by IndexError: reading would show nothing."""
    import numpy as np  # noqa: PLC0415

    from nddup.matching.threshold import overlap_or_less  # noqa: PLC0415

    try:
        overlap_or_less(np.zeros(1, np.uint64), 0, 1, 1, 2, 0)
    except IndexError:
        return
    raise AssertionError("indexes are not compared with their arrays")


def read_all(count: int, seed: int) -> int:
    """Read lines in this process; return how many are plain. Raises IndexError where an index leads outside."""
    import numpy as np  # noqa: PLC0415 - numba reads its settings when it is imported

    from nddup.reading.json_lines import Keys, find_blank, find_ends, read_lines  # noqa: PLC0415

    require_comparison()
    plain, lines = 0, damaged_lines(count, seed)
    keys = [Keys("text", "id", "url"), Keys("text"), Keys("t", "text", "id", ("title", "id"))]
    for start in range(0, count, BLOCK):
        some = b"".join(next(lines) + b"\n" for _ in range(min(BLOCK, count - start)))
        data = np.frombuffer(some, np.uint8)
        ends = find_ends(data)
        find_blank(data, ends)
        for of in keys:
            found = read_lines(data, ends, of, 1 << 20)
            found.texts.validate(full=True)
            plain += int(found.is_plain.sum())
    return plain


CHECKED = """
import sys
from nddup.ground import start_up
from nddup.ground.own_files import KernelFolder
start_up.kernel_folders = lambda source, below="": [KernelFolder(sys.argv[1])]
from scripts.try_damaged_lines import read_all
print(read_all(int(sys.argv[2]), int(sys.argv[3])))
"""
"""Reads lines by kernels that are kept in a folder of their own."""


INTERPRETED = """
import sys
import nddup.ground.kernels
nddup.ground.kernels.compiled = lambda function: function
from scripts.try_damaged_lines import read_all
print(read_all(int(sys.argv[2]), int(sys.argv[3])))
"""
"""Reads lines by the Python functions that the kernels are compiled from."""


def main() -> None:
    """Read the lines in a process with the settings; exit with its status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interpreted", action="store_true", help="without a compiler")
    options = parser.parse_args()
    code = INTERPRETED if options.interpreted else CHECKED
    with tempfile.TemporaryDirectory(prefix="nddup-checked-") as folder:
        command = [sys.executable, "-c", code, folder, str(options.lines), str(options.seed)]
        done = subprocess.run(command, env=os.environ | {"NUMBA_BOUNDSCHECK": "1"}, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
