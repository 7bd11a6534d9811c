"""The contract of both engines, ten verbs, and a finished run, which answers in these verbs over its tables.

Start with `engine`: a question is one text that both engines understand. `duck` answers it in this process, from a
folder or Arrow tables, without Java; `nddup.spark.engine` from DataFrames. `choose` picks the engine of a run. Imports
the tables and storage. Holds no mathematics and no meaning of a table.
"""
