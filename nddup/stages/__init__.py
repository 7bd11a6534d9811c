"""The relational steps of a run, each once for both engines: a SELECT, asked by the verbs of `nddup.engines.engine`.

Imports the contract of an engine and the tables, and no engine. Each step says which tables it reads, and of them which
columns; both engines give it their own. Start with `false_components`.
"""
