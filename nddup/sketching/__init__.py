"""From text to sketches. Pure: imports only `nddup.arrays` and `nddup.errors`.

`kinds` declares every kind of sketch, `recipe` makes the sketches of a batch of texts, and `min_s` is the default
kind. Sketches of words have a package of their own, `words`, which the default path never enters.
"""
