"""Passages: runs of tokens that stand in two documents or more, found exactly and in linear memory.

    token hashes   --anchors-->    samples that all places of a window have in common
    anchors        --windows-->    the windows that are repeated, by number
    windows        --passages-->   chains of windows that occur together: PASSAGES and OCCURRENCES
    windows        --cuts-->       the tokens that can go while every repeated window keeps its first place

`repeats` has the mathematics, arrays in and arrays out; `tabulate` makes the arrays of records, characters of
tokens, and the tables of both. May import reading, sketching, scanning and against's tokens. There is no
engine in these; `find_passages` is the order of the command, beside what writes, proves and shows its tables.
"""
