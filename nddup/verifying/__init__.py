"""The facts that a job computes, by other and plainer methods: what `nddup check` proves a run with.

Pure functions over arrays. May import `nddup.arrays` and `nddup.errors`, never `matching` or `mining`: the proof is
independent of them. Start in `definitions`.
"""
