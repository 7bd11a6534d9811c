"""A small repository with a history, in any place."""

import nddup.repository
from nddup.repository.opened_repository import Repository

WORDS = "a text of some words that is like many others but for its end "
BATCHES = [{f"d{i}": WORDS * 3 + str(i // 3) for i in range(6)}, {"x": "a text alone"}, {"d1": WORDS * 3 + "and more"}]


def fill(path: str) -> Repository:
    """Create a repository of three batches, one of which replaces a document, and a removal."""
    repo = nddup.repository.create(path, pairs={"threshold": 0.5}, local={"processes": 1})
    for batch in BATCHES:
        repo.add(batch, replace=True)
    repo.remove(["d2"])
    return repo
