"""Splits: which documents go to which part, so that no found pair has its documents in two parts.

A unit is a connected component of all found pairs, or a single document; it goes to one part as a whole. `assign_units`
is arrays in, arrays out; `write_split` is the order of `nddup split` and what it writes, `prove_split` its check.
"""
