"""Signatures as datasketch objects: its estimates and look-ups agree with the run."""

from itertools import combinations

import pandas as pd
import pyarrow as pa
import pytest

import nddup
from nddup.api.run_object import Run
from nddup.errors import ConfigError
from tests.results.kind_runs import texts

TABLE = pa.table({"id": list(texts()), "text": list(texts().values())})


@pytest.fixture(scope="module")
def run() -> Run:
    """Make a run with signatures of 64 slots."""
    return nddup.find_duplicates(TABLE, sketch={"kind": "minhash", "size": 64, "seed": 7}, shingle={"length": 2})


def test_its_estimate_is_ours(run: Run) -> None:
    """The estimate of datasketch for two documents is the run's resemblance: equal slots divided by all slots."""
    from datasketch import LeanMinHash  # noqa: PLC0415 - a second to load

    names = [name for name, text in texts().items() if text.strip()][:7]
    assert isinstance(run.minhash("f0v0"), LeanMinHash)
    for a, b in combinations(names, 2):
        assert run.minhash(a).jaccard(run.minhash(b)) == run.explain_pair(a, b).resemblance


@pytest.mark.parametrize("storage", [None, {"type": "dict"}])
def test_the_index_finds_what_the_run_finds(run: Run, storage: dict[str, str] | None) -> None:
    """The index holds every document with features, and with low bands it finds every near-duplicate."""
    from datasketch import MinHashLSH  # noqa: PLC0415 - a second to load

    index = run.lsh(0.3, storage_config=storage)

    assert isinstance(index, MinHashLSH)
    assert {name for name in texts() if name in index} == {name for name, text in texts().items() if text.strip()}
    for row in run.pairs.to_pylist():
        assert {row["doc_a"], row["doc_b"]} <= set(index.query(run.minhash(row["doc_a"])))


def test_tables_of_pandas_and_the_threshold_of_the_run() -> None:
    """A run over a pandas frame builds an index, at the run's own threshold by default."""
    from datasketch import MinHashLSH  # noqa: PLC0415 - a second to load

    frame = pd.DataFrame({"id": ["a", "b"], "text": ["x y z u v w", "x y z u v w"]})

    run = nddup.find_duplicates(frame, sketch={"kind": "minhash", "size": 20}, pairs={"threshold": 0.6})

    index = run.lsh()
    own = MinHashLSH(threshold=0.6, num_perm=20)
    assert (index.b, index.r) == (own.b, own.r)
    assert sorted(index.query(run.minhash("a"))) == ["a", "b"]


def test_what_datasketch_does_not_read_is_refused(run: Run) -> None:
    """Other kinds and permutations, and unknown and empty documents, are refused."""
    other = nddup.find_duplicates(TABLE)
    mixed = nddup.find_duplicates(TABLE, sketch={"kind": "minhash", "permutation": "mix"})

    with pytest.raises(ConfigError, match="these are of kind min-s, permutation mix"):
        other.minhash("f0v0")
    with pytest.raises(ConfigError, match="these are of kind minhash, permutation mix"):
        mixed.lsh()
    with pytest.raises(ConfigError, match="there is no document 'nobody'"):
        run.minhash("nobody")
    with pytest.raises(ConfigError, match="'empty1' has no features"):
        run.minhash("empty1")
    with pytest.raises(ConfigError, match="lsh: datasketch says: threshold must be in"):
        run.lsh(1.5)
