"""Sketches of the kind `whole`: two ids that only equal texts share.

    text --tokens--> hashes of the words or characters, in order --BLAKE2b-128--> two ids

Texts are equal when their tokens are: case, blanks and punctuation do not count, the order does. Nothing is estimated.
Two different texts of a collection of 10^9 have the same ids with a probability of about 10^-21, if no two of their
words have the same 64-bit hash.
"""

from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.sketching.min_s import Sketches, check_texts, read_only
from nddup.sketching.rolling_hash import hash_characters, hash_tokens, most_characters, most_tokens
from nddup.sketching.tokens import WORD_TABLE

IDS: Final = 2
"""Ids of a text that has a token."""


def digest_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64], *, unit: str = "word"
) -> Sketches:
    r"""Make the sketches of texts.

    Args:
        data: UTF-8, as for `min_s.sketch_texts`.
        offsets: (d + 1,), as there.
        unit: the tokens that are compared, `word` or `char`.

    Returns:
        One sketch per text. `n_features` is `IDS`; 0 for a text without tokens, whose sketch is empty.

    Cost: one compiled pass per text hashes the tokens; then 8 bytes per token are digested.

    Example:
        >>> texts = ["A rose is a rose.", "a ROSE is\na rose", "a rose is rose a"]
        >>> data = np.frombuffer("".join(texts).encode(), np.uint8)
        >>> made = digest_texts(data, np.cumsum([0, *map(len, texts)]))
        >>> [(made.ids[:2] == made.ids[at : at + 2]).all().item() for at in (2, 4)]
        [True, False]
    """
    bounds = check_texts(data, offsets, length=1, offset=1, size=1)
    n_texts, longest = max(bounds.size - 1, 0), int(np.diff(bounds).max(initial=0))
    hash_text = hash_characters if unit == "char" else hash_tokens
    room = most_characters(longest) if unit == "char" else most_tokens(longest)
    hashes = np.empty(room + 1, np.uint64)

    text = read_only(data)
    n_tokens = np.zeros(n_texts, np.int32)
    digests: list[bytes] = []
    for d in range(n_texts):
        n_tokens[d] = hash_text(text, bounds[d], bounds[d + 1], WORD_TABLE, hashes)
        if n_tokens[d]:
            digests.append(blake2b(hashes[: n_tokens[d]].tobytes(), digest_size=8 * IDS).digest())

    n_features = np.where(n_tokens > 0, IDS, 0).astype(np.int32)
    ids = np.sort(np.frombuffer(b"".join(digests), np.uint64).reshape(-1, IDS), axis=1).reshape(-1)
    return Sketches(n_tokens, n_features, np.concatenate([[0], np.cumsum(n_features, dtype=np.int64)]), ids)
