"""A run on each engine, and all that acts around it: sessions, workers, kernels. Imported by what people call.

`local_job` and `job` give `nddup.stages.run` what it asks of an engine, here and on Spark (`on_spark`). `engines`
chooses between them.
"""
