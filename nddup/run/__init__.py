"""A run, from inputs to report: the package that acts. Imports everything but `results`, `commands` and `cli`.

On Spark: `job` is a whole run, `on_spark.pipeline` the order of its stages. In memory: `local_job` and `local_stages`.
`engines` chooses between them; both use `stage`, which says what each table depends on.
"""
