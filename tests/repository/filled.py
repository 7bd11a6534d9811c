"""A small repository with a history, in any place."""

from functools import cache

import nddup.repository
from nddup.repository.bucket_place import BucketPlace
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


@cache
def _made_once() -> str:
    """Fill a repository in the bucket, which `fill_again` copies."""
    fill(path := "s3://box/made-once/pages")
    return path


def fill_again(path: str) -> Repository:
    """Do as `fill`; in the bucket by a copy of what was made there once, without copies on this disk."""
    if not path.startswith("s3://"):
        return fill(path)
    files = BucketPlace(path)._files  # noqa: SLF001 - the users' client
    files.copy(f"{_made_once()}/", f"{path}/", recursive=True)
    return nddup.repository.open(path)
