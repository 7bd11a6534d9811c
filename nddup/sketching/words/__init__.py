"""Sketches of words: lexicons, I-Match signatures and keywords. Pure, like the package around it.

`vocabulary` numbers the distinct words of a batch and maps them to terms, `lexicon` counts terms, and
`word_sketches` selects from them. To add a kind of words, start with `word_sketches.WordRule`.
"""
