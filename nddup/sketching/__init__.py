"""From text to sketches: tokens, shingles, permutations, and the ids a sketch keeps. Touches no files and no Spark.

May import `nddup.ground` and `nddup.errors` only. A new kind is declared in `kinds` and selects its ids in
`recipe`; `min_s` is the default kind. Sketches of words are in `vocabulary` and `word_sketches`, which the default
kind never uses. Kernels are plain functions of arrays: tests/sketching calls them directly.
"""
