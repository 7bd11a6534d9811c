"""What a run says about short texts: by the definition of resemblance, and only where it applies."""

import pytest

import nddup
from nddup.report.summary import notes, share_of_changes_found


@pytest.mark.parametrize(("tokens", "length", "threshold"), [(10, 5, 0.7), (30, 5, 0.8), (7, 3, 0.5), (3, 5, 0.7)])
def test_the_share_is_that_of_all_places(tokens: int, length: int, threshold: float) -> None:
    """Each word of a text is changed in turn, and both texts are compared shingle by shingle."""

    def shingles(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[at : at + length]) for at in range(max(len(words) - length + 1, 1))}

    words = [f"w{n}" for n in range(tokens)]
    found = 0
    for place in range(tokens):
        one, other = shingles(words), shingles([*words[:place], "new", *words[place + 1 :]])
        found += len(one & other) >= threshold * len(one | other)

    assert share_of_changes_found(tokens, length, threshold) == found / tokens


@pytest.mark.parametrize(("tokens", "is_noted"), [(30, True), (42, False), (60, False)])
def test_texts_of_which_all_changes_are_found_are_not_called_short(tokens: int, is_noted: bool) -> None:  # noqa: FBT001
    """Of 42 distinct words one may be any other: 33 of 43 shingles are common."""
    run = nddup.find_duplicates([{"text": " ".join(f"w{word}" for word in range(tokens))}], progress=False)
    assert ("the median document has" in "".join(notes(run.metrics))) == is_noted
