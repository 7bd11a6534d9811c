"""Sketches of words: lexicons, I-Match signatures and keywords. Pure, like the package around it.

`vocabulary` numbers the distinct words of a batch, `stemming` says what a word stands for, `lexicon` counts terms,
and `word_sketches` selects from them.
"""
