"""Single bits flipped in the files of a run or a repository, and whether what is read of it is right, or refused."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nddup.errors import NddupError

Answer = Callable[[], object]
"""Reads everything through nddup; raises NddupError in one line where something is damaged."""


class Flip(NamedTuple):
    """A bit of a file, and what came of it: `right`, `refused`, or in words what is wrong."""

    file: str
    bit: int
    result: str


def try_flips(folder: Path, files: list[Path], answer: Answer, *, flips: int, seed: int = 1) -> Iterator[Flip]:
    """Flip some bits, one at a time, and read everything each time; the folder is as before afterwards.

    Args:
        folder: the folder of the run or the repository.
        files: its files, each of which gets as many flips as the others.
        answer: reads everything.
        flips: how many.
        seed: of the choice of bits.
    """
    chance, due = random.Random(seed), answer()  # noqa: S311
    for number in range(flips):
        file = files[number % len(files)]
        whole = file.read_bytes()
        bit = chance.randrange(8 * len(whole))
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        file.write_bytes(bytes(broken))
        try:
            result = "right" if answer() == due else "wrong and silent"
        except NddupError as error:
            result = "refused" if "\n" not in str(error) else f"several lines: {error}"
        except Exception as error:  # noqa: BLE001 - what a command would show raw
            result = f"raw: {type(error).__name__}: {error}"
        finally:
            file.write_bytes(whole)
        yield Flip(str(file.relative_to(folder)), bit, result)


def files_of(folder: Path) -> list[Path]:
    """Return the files that nddup reads again, sorted, without empty ones."""
    left_out = {"report", "kept", "tagged"}
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and file.stat().st_size and not left_out & set(file.relative_to(folder).parts)
    )
