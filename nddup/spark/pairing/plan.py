"""What all steps between the distinct sketches and their pairs share: the rule, the tasks, and the layouts of blocks.

    sketches --gather_sketches--> homes      E1: each sketch in the task that its number chooses, its home
    homes    --ask, answer----->  replies    E2, E3: how rare each of its elements is                    `homes`
    both     --post_prefixes--->  postings   E4: a row a sketch and task that owns some of its prefix    `homes`
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
"""A row a sketch; `size` is the length of its `ids`."""

WANTED_LAYOUT: Layout = {"node": np.int64}
"""A row a sketch that a task asks for."""

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
"""Rows of three kinds, in columns of their own: pairs, links, and the `COUNTERS` of a task. The containments are empty
where the kind shows none."""


@dataclass(frozen=True)
class Pairing:
    """How pairs are found and compared.

    Attributes:
        threshold: when two sketches are near-duplicates.
        division: who owns which element. The pairs do not depend on it, but in components of more than `max_edges`.
        long_lists: what the holders of a prefix element, or a key, may cost.
        links: the holders of a list of more than `max_postings` are linked, not compared.
        finder: the keys by which sketches meet; None where they meet by what they share.
        max_edges: pairs after which a task makes no more within a component.
        most_ids: ids of the largest sketch there may be.
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
        """Tasks of every exchange."""
        return self.division.partitions

    @property
    def meeting(self) -> Meeting:
        """How candidates are made."""
        return Meeting(self.long_lists, self.links, self.finder is not None)

    @property
    def request_layout(self) -> Layout:
        """E2: a row an element; `many` is how often it counts, null where each counts once."""
        return {"rest": self.division.rest_type, "many": np.int64}

    @property
    def posting_layout(self) -> Layout:
        """E4: a row a sketch and owner. `count` is the length of its `rest` and `place`, and its
        `before` has `BEFORE` numbers for each of them, the upper 16 bits apart. `bitmap` has `WORDS` words.
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
