"""The two engines behind one contract of a few verbs. Start with `engine`, the contract.

Imports the tables; `engines.spark_engine` alone imports pyspark. Holds no mathematics and no meaning of a table.
"""
