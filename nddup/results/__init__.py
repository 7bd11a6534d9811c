"""What is done with a finished run: it is shown, checked, evaluated and reported, and `sweep` makes many.

May import `run`, `explaining`, `spark.checking` and everything below them. Runs Spark jobs, and writes only the outputs
beside a run's tables or a file of its own.
"""
