"""The steps of a run in memory on one machine, without a JVM: the same tables as those of `nddup.spark`.

May import the pure rooms, `tables` and `settings`; never pyspark. Start with `engine`, which tells the order.
"""
