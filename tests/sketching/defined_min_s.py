"""MIN_s by its definition, in plain Python, and by the package."""

import re
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from nddup.sketching.min_s import Sketches, sketch_texts
from nddup.sketching.permutations import mix_keys

MASK = 2**64 - 1
ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005-\u312f\u3190-\u3195\u31a0-\u31ff"
    "\u3220-\u3229\u3280-\u3289\u3400-\u4dbf\u4e00-\ua48f\ua9e0-\ua9ff\uaa60-\uaadf\uf900-\ufaff\uff66-\uff9f"
    "\U00011700-\U0001174f\U00016fe0-\U00018d7f\U0001aff0-\U0001b2ff\U0001d372-\U0001d376\U00020000-\U0003ffff"
)
"""Spaceless scripts, as ranges that hold no other word character."""
# Half the characters from a small alphabet, so that words and shingles repeat; half from all of Unicode.
texts = st.text(st.one_of(st.sampled_from("aAbB ,.1_éЖжς薔は ก\u0e31한İ😀"), st.characters(codec="utf-8")), max_size=60)


def sketch(documents: Sequence[str | bytes], **how: int) -> Sketches:
    """Sketch documents laid out as Arrow lays them out."""
    encoded = [d.encode() if isinstance(d, str) else d for d in documents]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return sketch_texts(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends, **how)


def sketch_one(document: str | bytes, **how: int) -> list[int]:
    ids: list[int] = sketch([document], **how).ids.tolist()
    return ids


def split(sketches: Sketches) -> list[list[int]]:
    return [part.tolist() for part in np.split(sketches.ids, sketches.offsets[1:-1])]


def defined_tokens(text: str) -> list[str]:
    """Find the tokens by a regular expression, and lower each character alone."""
    return [
        "".join(c.lower() if len(c.lower()) == 1 else c for c in token).replace("ς", "σ")
        for token in re.findall(rf"(?=\w)[{ALONE}]|(?:(?![{ALONE}])\w)+", text)
    ]


def defined_shingles(tokens: list[str], length: int, offset: int) -> list[tuple[str, ...]]:
    if 0 < len(tokens) < length:
        return [tuple(tokens)]
    return [tuple(tokens[i : i + length]) for i in range(0, len(tokens) - length + 1, offset)]


def defined_id(shingle: tuple[str, ...], seed: int) -> int:
    """Hash the tokens, hash the hashes, permute: in exact integers."""
    fingerprint = 0
    for token in shingle:
        state = 0xCBF29CE484222325
        for character in token:
            state = (state ^ ord(character)) * 0xD6E8FEB86659FD93 & MASK
        state = (state ^ state >> 32) * 0xFF51AFD7ED558CCD & MASK
        state ^= state >> 29
        fingerprint = (fingerprint * 0x9FB21C651E98DF25 + state) & MASK
    multiplier, increment = (int(key) for key in mix_keys(seed))
    value = (fingerprint * multiplier + increment) & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def defined_sketch(text: str, length: int, offset: int, size: int, seed: int) -> tuple[int, int, list[int]]:
    tokens = defined_tokens(text)
    ids = sorted({defined_id(shingle, seed) for shingle in defined_shingles(tokens, length, offset)})
    return len(tokens), len(ids), ids[:size]
