"""What a run says about short texts: by the definition of resemblance, and only where it applies."""

import pytest

from nddup.report.summary import share_of_changes_found


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
