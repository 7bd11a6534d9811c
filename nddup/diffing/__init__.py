"""What changed between two runs: documents, verdicts with the cause of each, pairs, families and sets.

`diff_tables` is the order of a diff over two runs, and what the command writes. The steps that are one SELECT are in
`stages/diff_runs.py` and `stages/families.py`.
"""
