"""Signatures of a run as objects of datasketch, for programs that serve look-ups with it.

datasketch is imported only when one of these functions is called: it loads slowly, and nothing else needs it.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from nddup.errors import ConfigError
from nddup.settings import plan
from nddup.settings.schema import Config

SCHEME = "affine64"
"""datasketch's name for the permutations that kind `minhash` uses by default."""


def minhash_of(documents: ds.Dataset, config: Config, doc_id: str) -> Any:  # noqa: ANN401 - a LeanMinHash
    """Return the signature of a document as a `datasketch.LeanMinHash`.

    Args:
        documents: DOCUMENTS of the run.
        config: settings of the run.
        doc_id: id of the document.

    Raises:
        ConfigError: if datasketch cannot read the run's signatures, there is no such document, or it has no features.
    """
    lean = _load(config).LeanMinHash
    rows = documents.to_table(columns=["signature"], filter=ds.field("doc_id") == pa.scalar(doc_id, pa.string()))
    if not len(rows):
        raise ConfigError(f"minhash: there is no document {doc_id!r}")
    values = rows["signature"][0].as_py()
    if not values:
        raise ConfigError(f"minhash: document {doc_id!r} has no features, and so no signature")
    hashes = np.array(values, np.int64).view(np.uint64)
    return lean(seed=config.sketch.seed, hashvalues=hashes, scheme=SCHEME)


def fill_lsh(
    documents: ds.Dataset, config: Config, *, threshold: float | None, storage_config: Mapping[str, Any] | None
) -> Any:  # noqa: ANN401 - a MinHashLSH
    """Return a `datasketch.MinHashLSH` that holds every document with a signature, under its id.

    Args:
        documents: DOCUMENTS of the run.
        config: settings of the run.
        threshold: threshold of the index; None: that of the run.
        storage_config: where datasketch keeps the index, such as `{"type": "redis", …}`; None: in memory.

    Raises:
        ConfigError: if datasketch cannot read the run's signatures, or refuses the threshold, the size or the storage.

    Cost: a pass over the signatures, a batch at a time, and datasketch's own cost of storing them.
    """
    library = _load(config)
    share = float(config.pairs.share) if threshold is None else threshold
    storage = None if storage_config is None else dict(storage_config)
    try:
        index = library.MinHashLSH(threshold=share, num_perm=config.sketch.size, storage_config=storage)
    except ValueError as error:
        raise ConfigError(f"lsh: datasketch says: {error}") from error
    with index.insertion_session() as session:
        for doc_id, hashes in _signatures(documents):
            session.insert(doc_id, library.LeanMinHash(seed=config.sketch.seed, hashvalues=hashes, scheme=SCHEME))
    return index


def _signatures(documents: ds.Dataset) -> Iterator[tuple[str, Any]]:
    """Yield the id and signature, (n,) uint64, of each document that has one; one batch at a time is in memory."""
    for batch in documents.to_batches(columns=["doc_id", "signature"]):
        for doc_id, values in zip(batch["doc_id"].to_pylist(), batch["signature"], strict=True):
            if values.is_valid and len(values):
                yield doc_id, values.values.to_numpy().view(np.uint64)


def _load(config: Config) -> Any:  # noqa: ANN401 - a module
    """Import datasketch; refuse a run whose signatures it cannot read."""
    made = plan.recipe_of(config).permutation
    if config.sketch.kind != "minhash" or made != "datasketch":
        raise ConfigError(
            "datasketch reads signatures of sketch.kind minhash with sketch.permutation datasketch; these are of kind"
            f" {config.sketch.kind}, permutation {made}"
        )
    return import_module("datasketch")
