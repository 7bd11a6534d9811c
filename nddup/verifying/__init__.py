"""The same facts as the job's, by other methods: what `nddup check` proves a run with.

Pure, and independent: imports `nddup.arrays` and `nddup.errors` only, never `matching` or `mining`. Start in
`definitions`.
"""
