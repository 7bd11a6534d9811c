"""What changed between two runs: documents, verdicts with the cause of each, pairs, families and sets.

    match_names    how many documents an earlier and a later family share  -->  which later one has an earlier's name

This one is arrays in, arrays out. `diff_tables` is the order of a diff over two runs, `write_diff` what the command
reads and writes. The steps that are one SELECT are in `stages/diff_runs.py` and `stages/family_names.py`.
"""
