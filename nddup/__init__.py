"""Near-duplicate document clusters you can trust, on Apache Spark.

The pipeline, top to bottom. Each arrow is a function in `nddup.stages`; each name on the right is a table whose schema
is in `nddup.schemas`.

    files      --read-->       chunks      the bytes of each record
    chunks     --sketch-->     records     sketch of each document, or the reason why there is none
    records    --collapse-->   documents   doc_id, source, record, group, sketch        and rejects
    documents  --divide-->     postings    which sketch holds which feature, pruned
    postings   --match-->      matches     near-duplicate sketches
    matches    --lead-->       matches     where a family is too large for its pairs
    matches    --expand-->     pairs       near-duplicate documents
    matches    --graph-->      graph       components, kept nodes
    graph      --mine-->       clusters    maximal sets of near-duplicates              and members
    graph      --keep-->       keep        which documents stay

`nddup.algorithms` is the mathematics and never imports pyspark; `nddup.stages` is the Spark wiring, lazy throughout.
`nddup.pipeline` is the order of the stages, `nddup.pairing`, `nddup.clustering` and `nddup.rounds` its parts, all over
`Job.save` in `nddup.state`: the one way to make and count a table. `nddup.job` is a whole run; `nddup.commands` holds a
module for each command.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["find_duplicates"]

if TYPE_CHECKING:
    from nddup.job import find_duplicates as find_duplicates


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load Spark only when it is asked for: `nddup.algorithms` and `--help` do without it."""
    if name == "find_duplicates":
        from nddup.job import find_duplicates  # noqa: PLC0415

        return find_duplicates
    raise AttributeError(f"module 'nddup' has no attribute {name!r}")
