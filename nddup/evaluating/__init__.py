"""A run, or settings, against a reference: `evaluate` and `sweep` score, `truth` makes the reference by brute force.

`judged` reads what people say of pairs and removals. Imports what opens a finished run, and everything below it.
"""
