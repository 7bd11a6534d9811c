"""Chains of texts whose records have values, drawn settings, and the keep-list by its definition."""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = dict[str, Any]


def write_texts(folder: Path, seed: int, families: int = 6) -> dict[str, Row]:
    """Write chains of texts in two files, with copies and few values, some missing; return the records by id."""
    draw, records = random.Random(seed), dict[str, Row]()  # noqa: S311 - texts
    for family in range(families):
        words = [f"family{family}word{place}" for place in range(60)]
        for _ in range(draw.randrange(1, 12)):
            way = draw.random()
            if way < 0.4:
                words = [*words, *(f"added{draw.randrange(10**6)}" for _ in range(draw.randrange(1, 6)))]
            elif way < 0.7:
                words[draw.randrange(len(words))] = f"other{draw.randrange(10**6)}"
            name, text = f"d{len(records):03}", " ".join(words) if draw.random() < 0.9 else " "
            records[name] = {
                "id": name,
                "text": text,
                "file": draw.choice("ab"),
                "lang": draw.choice(["ru", "1", None]),
            }
            records[name] |= {"licence": draw.choice(["MIT", "", "-"])} if draw.random() < 0.8 else {}
    folder.mkdir()
    for file in "ab":
        rows = [json.dumps({name: value for name, value in row.items() if name != "file"}) + "\n"
                for row in records.values() if row["file"] == file]  # fmt: skip
        (folder / f"{file}.jsonl").write_text("".join(rows))
    return records


def choose(seed: int, ids: list[str], folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return settings, drawn, and the words of `keep.force` by id."""
    draw, said = random.Random(seed), dict[str, str]()  # noqa: S311 - settings
    same = draw.choice([["lang"], ["lang", "licence"], ["nddup_source"], ["licence", "nddup_source"]])
    most = draw.choice([None, None, 0.0, 0.1])
    keep: dict[str, Any] = {"policy": draw.choice(["first-id", ["-licence", "id"]]), "same": same, "max_lost": most}
    if draw.random() < 0.4:
        said = {one: draw.choice(["kept", "removed"]) for one in ids if draw.random() < 0.3}
        (folder / "force.csv").write_text("".join(f"{one},{word}\n" for one, word in said.items()))
        keep |= {"force": str(folder / "force.csv")} if said else {}
    pairs: dict[str, Any] = {"threshold": 0.6, "max_edges": draw.choice([1_000_000, 3])}
    pairs["confirm"] = "resemblance" if most is not None else draw.choice(["resemblance", "none"])
    return {"keep": keep, "pairs": pairs, "output": {"report": False}}, said


def define_keep(records: dict[str, Row], settings: dict[str, Any], said: dict[str, str]) -> dict[str, str | None]:
    """Return for each document the kept one that replaces it, itself if it stays, None if forced out alone."""
    keep = settings["keep"]
    sets = {name: shingles(row["text"]) for name, row in records.items()}
    values = {name: [row["file"] if of == "nddup_source" else row.get(of) for of in keep["same"]]
              for name, row in records.items()}  # fmt: skip

    def turn(name: str) -> tuple[Any, ...]:
        licence = (records[name].get("licence") or "").strip() if keep["policy"] != "first-id" else ""
        falling = [-ord(letter) for letter in licence]
        return ("kept", None, "removed").index(said.get(name)), not licence, falling, name

    stands: dict[str, str | None] = {}
    kept: list[str] = []
    for name in sorted(records, key=turn):
        offers = {other: alike(sets[name], sets[other]) for other in kept if values[other] == values[name]}
        offers = {other: share for other, share in offers.items() if share >= Fraction(6, 10)}
        if keep["max_lost"] is not None and said.get(name) != "removed":
            most = Fraction(repr(keep["max_lost"]))
            offers = {other: share for other, share in offers.items()
                      if len(sets[name] - sets[other]) <= most * len(sets[name])}  # fmt: skip
        if said.get(name) == "kept" or (not offers and said.get(name) != "removed"):
            kept.append(name)
            stands[name] = name
        else:
            stands[name] = min(offers, key=lambda other: (-offers[other], turn(other)), default=None)
    return stands


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.split()
    return frozenset(tuple(words[at : at + 5]) for at in range(len(words) - 4))


def alike(a: frozenset[Any], b: frozenset[Any]) -> Fraction:
    """Return the resemblance; texts without a word are equal."""
    return Fraction(len(a & b), len(a | b)) if a | b else Fraction(1)


def rows_of(folder: Path, name: str) -> list[Row]:
    found: list[Row] = pq.read_table(folder / name).to_pylist()
    return found
