"""MIN_s by its definition, in plain Python, and by the package."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nddup.sketching.min_s import Sketches, sketch_texts
from nddup.sketching.permutations import mix_keys
from tests.sketching.defined_tokens import MASK, defined_hash, defined_tokens

# Half the characters from a small alphabet, so that words and shingles repeat; half from all of Unicode.
texts = st.text(
    st.one_of(
        st.sampled_from(
            "aAbB ,.1_éЖжς薔は ก\u0e31한İ😀iß\u0301\u0307\u0323\u0345\u00ad\u200dᾳ\u1100\u1161\u11a8\u093c\u09c7\u09beൺ"
        ),
        st.characters(codec="utf-8"),
    ),
    max_size=60,
)


def sketch(documents: Sequence[str | bytes], **how: Any) -> Sketches:  # noqa: ANN401 - of `sketch_texts`
    """Sketch documents laid out as Arrow lays them out."""
    encoded = [d.encode() if isinstance(d, str) else d for d in documents]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return sketch_texts(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends, characters=False, **how)


def sketch_one(document: str | bytes, **how: int) -> list[int]:
    ids: list[int] = sketch([document], **how).ids.tolist()
    return ids


def split(sketches: Sketches) -> list[list[int]]:
    return [part.tolist() for part in np.split(sketches.ids, sketches.offsets[1:-1])]


def defined_shingles(tokens: list[str], length: int, offset: int) -> list[tuple[str, ...]]:
    if 0 < len(tokens) < length:
        return [tuple(tokens)]
    return [tuple(tokens[i : i + length]) for i in range(0, len(tokens) - length + 1, offset)]


def defined_id(shingle: tuple[str, ...], seed: int) -> int:
    """Hash the tokens, hash the hashes, permute: in exact integers."""
    fingerprint = 0
    for token in shingle:
        fingerprint = (fingerprint * 0x9FB21C651E98DF25 + defined_hash(token)) & MASK
    multiplier, increment = (int(key) for key in mix_keys(seed))
    value = (fingerprint * multiplier + increment) & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def defined_sketch(text: str, length: int, offset: int, size: int, seed: int) -> tuple[int, int, list[int]]:
    tokens = defined_tokens(text)
    ids = sorted({defined_id(shingle, seed) for shingle in defined_shingles(tokens, length, offset)})
    return len(tokens), len(ids), ids[:size]
