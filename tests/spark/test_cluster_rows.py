"""Sets of nodes on their way to clusters."""

import numpy as np
import pytest

from nddup.mining.cluster_modes import list_sets
from nddup.mining.itemsets import Itemsets
from nddup.spark.clustering.mine_components import (
    ITEM_BITS,
    name_items,
)


def test_an_item_has_room_for_what_it_names() -> None:
    """The largest component and the largest position fit into an item; one more is refused, not wrapped."""
    last, places = (1 << 63 - ITEM_BITS) - 1, (1 << ITEM_BITS) - 1

    assert name_items(np.array([0, last]), np.array([places, 0])).tolist() == [places, last << ITEM_BITS]
    for ordinal, position in ((last + 1, 0), (0, places + 1)):
        with pytest.raises(ValueError, match="bits for a position"):
            name_items(np.array([ordinal]), np.array([position]))


def test_very_many_sets_of_a_component_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sets of a component are cut into batches, because Arrow counts the values of a list column with 31 bits."""
    monkeypatch.setattr("nddup.mining.cluster_modes.VALUES_PER_BATCH", 4)
    sets = Itemsets(np.array([0, 2, 4, 7]), np.arange(7, dtype=np.int32), np.array([9, 8, 7], np.int32), "all")

    batches = list(list_sets([(7, sets)]))

    assert [batch.num_rows for batch in batches] == [2, 1]
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert rows == [(7, [0, 1], 9, "all"), (7, [2, 3], 8, "all"), (7, [4, 5, 6], 7, "all")]
    assert list(list_sets([])) == []
