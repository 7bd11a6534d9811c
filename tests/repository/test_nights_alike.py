"""A run onto a run and a repository have the tables of a fresh run, whatever finds the pairs."""

import random
from pathlib import Path

import pytest

import nddup.repository
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config, nest_settings
from nddup.settings.schema import Config
from tests.finished_runs import sorted_tables, write_texts
from tests.repository.test_rebuild import CHOICES
from tests.samples_by_night import first

LEVELLED, COUNTED = "levels", "keywords"
"""Kinds that no run can go on from: refused by name."""

BY_DAY = ("leaders, partition", "exact, bands, stars")
"""Settings that `make test` tries: sketches or shingles decide, leaders or all pairs, and stars."""

COMPARED = ("pairs", "keep", "clusters", "members", "false_components")


def draw_texts(chance: random.Random, night: int) -> dict[str, str]:
    """Return near-copies of a few texts under ids of their own."""
    texts = {}
    for number in range(chance.randint(3, 12)):
        kind = chance.randrange(4)
        words = [f"{'vwxy'[kind]}{n}" for n in range(20 + 15 * kind)]
        for _ in range(chance.choice([0, 0, 1, 2, 3])):
            words[chance.randrange(len(words))] = f"z{chance.randrange(3)}"
        texts[f"n{night}-{number:02}"] = " ".join(words[chance.choice([0, 0, 3]) :])
    return texts


def config_of(name: str) -> Config:
    settings = nest_settings(CHOICES[name], origin="test")
    own = {"output": {"report": False, "onto": True}, "local": {"processes": 1}}
    return build_config({**settings, **own}, origin="test")


@pytest.mark.parametrize("name", first(len(BY_DAY), [*BY_DAY, *sorted(CHOICES.keys() - {*BY_DAY, LEVELLED, COUNTED})]))
def test_three_ways_to_the_same_tables(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)  # noqa: S311
    config = config_of(name)
    repo = nddup.repository.create(str(tmp_path / "repo"), **CHOICES[name])
    onto = None
    for night in range(3):
        batch = tmp_path / "in" / f"night-{night}"
        batch.mkdir(parents=True)
        write_texts(batch / "a.jsonl", draw_texts(chance, night))
        run_locally([str(batch)], str(tmp_path / batch.name), config, onto=onto, batch=batch.name)
        onto = str(tmp_path / batch.name)
        repo.add([str(batch)])

    run_locally([str(tmp_path / "in")], str(tmp_path / "fresh"), config)
    fresh = sorted_tables(tmp_path / "fresh")
    assert sorted_tables(Path(str(onto))) == fresh
    repo.write_tables(str(tmp_path / "stored"))
    stored = sorted_tables(tmp_path / "stored")
    assert {table: stored[table] for table in COMPARED} == {table: fresh[table] for table in COMPARED}
    assert fresh["pairs"], "nothing is alike"
