"""The facts that a run computes, by independent, plainer methods: `nddup check` uses them to prove a run.

Pure functions over arrays. May import `nddup.ground` and `nddup.errors`, never `matching` or `mining`: the
proof is independent of them. Start with `definitions`.
"""
