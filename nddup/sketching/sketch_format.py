"""The version of the ids in sketches. No compiled code is needed to read it."""

from typing import Final

from nddup.sketching.tokens import TOKEN_TABLE_VERSION

SKETCH_FORMAT: Final = 2
"""Raise it whenever the ids of any text change: sketches stored before cannot be compared with those made later.

An id depends on the word table (`tokens.TOKEN_TABLE_VERSION` and the rule of `tokens`), on the hash of tokens and of
shingles (`rolling_hash`), on where shingles start, and on the permutation (`permutations.mix_id`).
"""

FULL_FORMAT: Final = f"{SKETCH_FORMAT}/unicode-{TOKEN_TABLE_VERSION}"
"""Two stored sketches can be compared only if this is equal: `versions.sketch_format` in the metrics of a run."""
