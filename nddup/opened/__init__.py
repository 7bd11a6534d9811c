"""A finished run, opened for reading: its metrics, its texts, and SQL over its tables.

`duck` reads the folder in this process, without Java; `arrow_tables` reads a run in memory; `spark` reads a folder that
only Hadoop can open, or reads on a cluster. A query is one text that both engines understand. Only `spark` imports
pyspark.
"""
