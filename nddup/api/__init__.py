"""The Python API: `find_duplicates`, `open`, and a run as an object.

    find_duplicates   a table of texts --> Run
    open_run          the folder of a finished run --> Run
    run_object        Run: its tables, SQL over them, and the look-ups below
        views         tables that are read on demand, one cluster, one document, and how they look in a notebook
        answers       why a pair is one, the run at another threshold, its signatures as objects of datasketch

The commands are in `nddup.commands`. Importing this package loads nothing.
"""
