"""The Python API: `find_duplicates`, `open`, and a run as an object.

    find_duplicates   a table of texts --> Run
    open_run          the folder of a finished run --> Run
    run_object        Run: its tables, SQL over them, and the look-ups below
        cluster, document, pair_verdict     one cluster, document or pair, and why the run decided as it did
        rethreshold                         the run recomputed with another threshold
        datasketch_objects                  its signatures as objects of datasketch
    run_table                               tables that are read on demand
    html                                    how all of these look in a notebook

The commands are in `nddup.commands`. Importing this package loads nothing.
"""
