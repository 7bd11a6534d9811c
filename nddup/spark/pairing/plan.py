"""What all steps from distinct sketches to pairs share: the rule, the tasks, and the layouts of blocks.

    sketches --gather_sketches--> homes      E1: each sketch in its home, the task its node chooses      `homes`
    homes    --ask, answer----->  replies    E2, E3: how rare each of its elements is                    `homes`
    both     --post_prefixes--->  postings   E4: a row per sketch and owner of some of its prefix        `homes`
    postings --ask_sketches, send_sketches--> sketches     E5, E6: those that are in a candidate pair    `meet`, `homes`
    both     --compare, drop_repeats-->       compared     E7: each pair once                            `meet`

E1 to E7 are the exchanges. Every step is a function of the blocks of one task.
"""

from dataclasses import dataclass, field

import numpy as np

from nddup.matching.connected_pairs import NO_LIMIT
from nddup.matching.element_join import Meeting
from nddup.matching.elements import Division
from nddup.matching.long_lists import LongLists
from nddup.matching.threshold import Threshold
from nddup.sketching.lsh_keys import Finder
from nddup.spark.blocks import Layout

NARROW = np.iinfo(np.uint16).max

SKETCH_LAYOUT: Layout = {"node": np.int64, "size": np.int32, "ids": np.uint64}
"""One row per sketch; `size` is the length of its `ids`."""

WANTED_LAYOUT: Layout = {"node": np.int64}
"""One row per sketch that a task asks for."""

PAIR_LAYOUT: Layout = {
    "node_a": np.int64,
    "node_b": np.int64,
    "overlap": np.int32,
    "resemblance": np.float64,
    "containment_a": np.float64,
    "containment_b": np.float64,
    "link_a": np.int64,
    "link_b": np.int64,
    "counts": np.int64,
}
"""Three kinds of rows, each in its own columns: pairs, links, and the `COUNTERS` of a task. The containments are empty
where the sketch kind shows none."""


@dataclass(frozen=True)
class Pairing:
    """How pairs are found and compared.

    Attributes:
        threshold: when two sketches are near-duplicates.
        division: which task owns which element. The pairs do not depend on it, except in components of more than
            `max_edges` pairs.
        long_lists: limits on the cost of comparing the holders of a prefix element or a key.
        links: whether the holders of a list of more than `max_postings` are linked instead of compared.
        finder: the keys by which sketches meet; None if they meet by shared features.
        max_edges: pairs of a component after which a task makes no more of them.
        most_ids: ids of the largest possible sketch.
    """

    threshold: Threshold
    division: Division
    long_lists: LongLists
    links: bool = False
    finder: Finder | None = None
    max_edges: int = NO_LIMIT
    most_ids: int = field(default=1 << 31)

    @property
    def partitions(self) -> int:
        """Number of tasks of every exchange."""
        return self.division.partitions

    @property
    def meeting(self) -> Meeting:
        """How candidates are found."""
        return Meeting(self.long_lists, self.links, self.finder is not None)

    @property
    def request_layout(self) -> Layout:
        """E2: one row per element; `many` is how often it counts, null if each counts once."""
        return {"rest": self.division.rest_type, "many": np.int64}

    @property
    def posting_layout(self) -> Layout:
        """E4: one row per sketch and owner. `rest` and `place` have `count` values; `before` has `BEFORE` numbers for
        each of them, with the upper 16 bits in a column of their own. `bitmap` has `WORDS` words.
        """
        short: type[np.generic] = np.uint16 if self.most_ids <= NARROW else np.int32
        numbers: Layout = dict.fromkeys(("size", "left", "need", "count"), short)
        return {
            "node": np.int64,
            **numbers,
            "bitmap": np.uint64,
            "rest": self.division.rest_type,
            "place": short,
            "before": np.uint32,
            "before_upper": np.uint16,
        }
