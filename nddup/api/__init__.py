"""What a Python program is given: `find_duplicates`, `open`, and a run as an object.

    find_duplicates   a table of texts --> Run
    open_run          the folder of a finished run --> Run
    run_object        Run: its tables, SQL over them, and what follows
        cluster, document, pair_verdict     one of each, with the reason why it is as it is
        rethreshold                         the run as if made with another threshold
    run_table                               tables that are read when asked for
    html                                    how all of these look in a notebook

The commands are in `nddup.commands`. Importing this package loads nothing.
"""
