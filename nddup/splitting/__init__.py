"""Splits: which documents go to which part, so that no found pair has its documents in two parts.

    parts          `train=.8,valid=.1,test=.1`   -->  PARTS: names and exact shares
    assign_units   units with their documents, and how many are in each stratum  -->  the part of each

A unit is a connected component of all found pairs, or a single document; it goes to one part as a whole. These two are
arrays in, arrays out. `make_split` is the order of `nddup split`, `write_split` and `prove_split` what follows.
"""
