"""Near-duplicate document clusters you can trust: in memory on one machine, on Apache Spark beyond it.

The pipeline, top to bottom. Each name on the right is a table whose schema is in `nddup.tables`. Each arrow is a step
of both engines: a module of `nddup.local` over arrays, and of `nddup.spark` over DataFrames, which call the same pure
functions. `nddup.stages.run` gives the order of a whole run, once for both.

    files      --scan-->       records     sketch of each document, or the reason why there is none
    records    --collapse-->   documents   doc_id, source, record, group, sketch        and rejects
    documents  --prune-->      postings    which sketch holds which feature
    postings   --match-->      matches     near-duplicate sketches; in families with too many pairs, those of leaders
    matches    --expand-->     pairs       near-duplicate documents
    matches    --graph-->      graph       components, kept nodes
    graph      --mine-->       clusters    maximal sets of near-duplicates              and members
    graph      --keep-->       keep        which documents stay

The rooms, from the ground up; the `__init__` of each says what it may import:

    reading, sketching, matching, mining, verifying     the mathematics, without Spark
    scanning                                            from files to Arrow batches, in any worker, without Spark
    settings, explaining                                the settings of a run, and what they mean
    local                                               the steps in memory, without Spark
    spark                                               the steps over DataFrames, lazy
    engines, stages                                     the verbs of an engine, and the run written once over them
    engines, report                                     a finished run opened for reading, and written as a page
    checking                                            the proofs of `nddup check`, on either engine
    against                                             which items of one collection occur in another, without Spark
    passages                                            what is repeated below the document, without Spark
    storage, run                                        the folder of a run; the run on each engine, sessions, kernels
    repository                                          a collection that grows by batches, and look-ups in it
    api                                                 the Python interface: a run as an object
    results, commands                                   commands on a finished run; a module for each command
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["find_duplicates", "open"]

if TYPE_CHECKING:
    from nddup.api.find_duplicates import find_duplicates
    from nddup.api.run_object import open_run as open  # noqa: A004 - `nddup.open`


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import the API only when it is used: `--help` does not need it."""
    if name == "find_duplicates":
        from nddup.api.find_duplicates import find_duplicates  # noqa: PLC0415

        return find_duplicates
    if name == "open":
        from nddup.api.run_object import open_run  # noqa: PLC0415

        return open_run
    raise AttributeError(f"module 'nddup' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the names that an editor completes."""
    return sorted([*globals(), *__all__])
