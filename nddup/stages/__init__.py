"""A run, once for both engines: its order, and each step that is one SELECT over the verbs of `nddup.engines.engine`.

    run               make_run: from INPUT paths to a finished folder; find_clusters: the steps alone
    run_engine        what a run asks of an engine: sketch, pair, cluster, keep, and what is written beside the tables
    stage             a stage, measured; what each table depends on; the metrics of a run
    inputs_found, losses, progress     what is read, what may be lost, what is shown meanwhile
    settle, expand, names, keep        the relational steps

Imports the contract of an engine, the tables, the settings, storage and the report; no engine and no Spark. A step says
which tables it reads, and of them which columns; both engines give it their own. Start with `run`.
"""
