"""The two engines behind one contract of a few verbs, and a finished run, which answers in these verbs over its tables.

Start with `engine`, the contract: a question is one text that both engines understand. `embedded` reads a folder or
Arrow tables in this process, without Java; `spark_engine`, which alone imports pyspark, reads DataFrames, or a folder
on a cluster or one that only Hadoop can open. Imports the tables and storage. Holds no mathematics and no meaning of a
table.
"""
