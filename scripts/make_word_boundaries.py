"""Write `tests/sketching/word_boundaries.txt`: where UAX #29 sees words in a few lines of each language.

    python scripts/make_word_boundaries.py udhr.zip

`udhr.zip` has the Universal Declaration of Human Rights, which is in the public domain, in some 300 languages; those in
UTF-8 are used. The boundaries are those of the package `regex` (`pip install regex`), which nothing else here needs.
"""

import sys
import zipfile
from pathlib import Path

import regex

BOUNDARIES = Path(__file__).parents[1] / "tests" / "sketching" / "word_boundaries.txt"
FIRST, CHARACTERS = 1000, 240
WORDS = regex.compile(r"(?V1w)\b")
BOUNDARY = "\u2016"


def main() -> None:
    """Write the file."""
    lines = []
    with zipfile.ZipFile(sys.argv[1]) as archive:
        for name in sorted(archive.namelist()):
            text = archive.read(name).decode("utf-8", "ignore") if "UTF8" in name else ""
            part = " ".join(text[FIRST:][:CHARACTERS].split())
            if part:
                lines.append(f"{name.rpartition('/')[2]}\t{BOUNDARY.join(filter(None, WORDS.split(part)))}")
    BOUNDARIES.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
