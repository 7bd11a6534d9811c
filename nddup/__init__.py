"""Near-duplicate document clusters you can trust, on Apache Spark.

The pipeline, top to bottom. Each arrow is a function in `nddup.spark`; each name on the right is a table whose schema
is in `nddup.tables`.

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

The rooms, from the ground up; each says in its `__init__` what it may import:

    reading, sketching, matching, mining, verifying     the mathematics, without Spark
    scanning                                            from files to Arrow batches, in any worker, without Spark
    settings, explaining                                what a run can be told, and what that means
    spark                                               the stages over DataFrames, lazy
    opened, report                                      a finished run opened for reading, and written as a page
    storage, run                                        a run, from inputs to report: the packages that act
    results, commands                                   what is done with a finished run; a module for each command
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["find_duplicates"]

if TYPE_CHECKING:
    from nddup.run.find_duplicates import find_duplicates


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load Spark only when it is asked for: the pure packages and `--help` do without it."""
    if name == "find_duplicates":
        from nddup.run.find_duplicates import find_duplicates  # noqa: PLC0415

        return find_duplicates
    raise AttributeError(f"module 'nddup' has no attribute {name!r}")
