"""A run, or settings, against a reference: `evaluate` and `sweep` score, `truth` makes the reference by brute force.

`labelled_pairs` reads what people say of pairs. Imports what opens a finished run, and everything below it.
"""
