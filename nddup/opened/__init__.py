"""A finished run, opened for reading: its metrics, its texts, and SQL over its tables.

`duck` reads the folder in this process, without Java; `arrow_tables` reads a run that leaves no folder; `spark` reads
what only Hadoop opens, or what is to be read on a cluster. A question is one text that both engines understand. Only
`spark` imports pyspark.
"""
