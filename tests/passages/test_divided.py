"""The search divided among tasks finds what the search in one memory finds, however the documents are divided."""

from collections import defaultdict
from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, take_rows
from nddup.passages.divided import (
    Details,
    Posts,
    Verdicts,
    describe_windows,
    judge_windows,
    list_asked,
    place_windows,
    post_anchors,
)
from nddup.passages.repeats import Repeats, chain_windows, find_repeats
from tests.passages.test_repeats import DOCUMENTS, Texts, hashed, ragged_of, words

Occurrence = tuple[int, int, int, int, int, bool]


class Said(NamedTuple):
    """Occurrences as (document, token, tokens, documents, places, first); cuts; tokens covered; second copies."""

    occurrences: list[Occurrence]
    cuts: list[tuple[int, int, int]]
    covered: dict[int, int]
    second_copies: int


def say(repeats: Repeats, rows: Ragged, documents: NDArray[np.int64]) -> Said:
    """Return what was found, with documents by their numbers in the collection."""
    passages, cuts = repeats
    occurrences = [
        (
            int(documents[home]),
            token,
            int(passages.tokens[which]),
            int(passages.documents[which]),
            int(passages.places[which]),
            bool(passages.firsts[which] == rows.offsets[home] + token),
        )
        for which, home, token in zip(
            passages.passage.tolist(), passages.document.tolist(), passages.token.tolist(), strict=True
        )
    ]
    runs = [
        (int(documents[home]), token, end)
        for home, token, end in zip(cuts.document.tolist(), cuts.token.tolist(), cuts.token_end.tolist(), strict=True)
    ]
    return Said(
        occurrences, runs, dict(zip(documents.tolist(), cuts.covered.tolist(), strict=True)), cuts.second_copies
    )


def divide(  # noqa: PLR0913 - the texts, and how they are divided
    rows: Ragged, ranks: NDArray[np.int64], length: int, homes: NDArray[np.int64], tasks: int, *, within: bool = False
) -> tuple[Said, dict[str, int]]:
    """Find everything with the documents in their `homes`, the anchors in as many tasks; also count what is moved."""
    held = [np.flatnonzero(homes == task) for task in range(tasks)]
    parts = [take_rows(rows, documents) for documents in held]
    posted = [post_anchors(part, ranks[documents], length) for part, documents in zip(parts, held, strict=True)]
    verdicts: dict[int, list[Verdicts]] = defaultdict(list)
    moved = {"posts": sum(len(one.posts.keys) for one in posted), "windows": 0}
    for task in range(tasks):
        mine = [np.flatnonzero(one.posts.keys % np.uint64(tasks) == task) for one in posted]
        posts = Posts(
            *map(
                np.concatenate,
                zip(*([c[at] for c in one.posts] for one, at in zip(posted, mine, strict=True)), strict=True),
            )
        )
        origins = np.repeat(np.arange(tasks), [len(at) for at in mine])
        numbers = np.concatenate(mine)
        asked = list_asked(posts, within=within)
        found = [
            describe_windows(part, one, numbers[asked[origins[asked] == home]], length)
            for home, (part, one) in enumerate(zip(parts, posted, strict=True))
        ]
        details = Details(*map(np.concatenate, zip(*found, strict=True)))
        moved["windows"] += len(details.windows)
        judged = judge_windows(posts, asked, details, within=within)
        for home in range(tasks):
            its = origins[judged.rows] == home
            row = numbers[judged.rows[its]].astype(np.int32)
            verdicts[home].append(Verdicts(row, *(column[its] for column in judged[1:])))
    said = []
    for home, (part, documents) in enumerate(zip(parts, held, strict=True)):
        gathered = Verdicts(*map(np.concatenate, zip(*verdicts[home], strict=True)))
        windows = place_windows(part, ranks[documents], posted[home], gathered)
        said.append(say(chain_windows(part.offsets, windows, length, within=within), part, documents))
    merged = Said(
        sorted(row for one in said for row in one.occurrences),
        sorted(row for one in said for row in one.cuts),
        {document: count for one in said for document, count in one.covered.items()},
        sum(one.second_copies for one in said),
    )
    return merged, moved


@given(DOCUMENTS, st.integers(1, 7), st.booleans(), st.integers(1, 4), st.randoms())
def test_however_documents_are_divided_the_same_is_found(
    texts: Texts,
    length: int,
    within: bool,  # noqa: FBT001 - drawn
    tasks: int,
    chance: Random,
) -> None:
    """Occurrences, counts, first places and cuts equal those of one memory, for documents in any of several tasks."""
    rows = ragged_of(texts)
    ranks = np.array(chance.sample(range(3 * len(texts) + 1), len(texts)), np.int64)
    homes = np.array([chance.randrange(tasks) for _ in texts], np.int64)
    whole = say(find_repeats(rows, ranks, length, within=within), rows, np.arange(len(texts)))
    divided, _ = divide(rows, ranks, length, homes, tasks, within=within)
    assert divided == whole._replace(occurrences=sorted(whole.occurrences), cuts=sorted(whole.cuts))


def test_a_template_of_many_pages_is_a_few_rows_a_task() -> None:
    """Of a template in 10,000 pages a task posts its anchors once each, and those at its end once for each page."""
    chance = np.random.default_rng(1)
    template = " ".join(words(chance, 600))
    texts = [f"{template} page {number}" for number in range(10_000)]
    rows, ranks = hashed(texts), np.arange(len(texts))
    said, moved = divide(rows, ranks, 50, ranks % 3, 3)
    assert [row[2:5] for row in said.occurrences] == [(601, 10_000, 10_000)] * 10_000
    assert sum(row[5] for row in said.occurrences) == 1
    assert moved["posts"] < 5 * 10_000
    assert len(said.cuts) == 9_999


def test_constant_text_is_a_few_rows() -> None:
    """One word 100,000 times in two documents posts two rows a task."""
    rows = hashed(["a " * 100_000, "a " * 90_000])
    said, moved = divide(rows, np.arange(2), 50, np.arange(2), 2)
    assert moved == {"posts": 4, "windows": 8}
    assert said.cuts == [(1, 0, 90_000)]
