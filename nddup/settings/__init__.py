"""The settings of a run. Reads configuration files; touches nothing else.

May import `nddup.errors`, `redaction`, and the rules of `matching`, `sketching` and `scanning` that settings choose.
`schema` has every key with its default and refuses a wrong value; `load` reads files and assignments and words the
refusal; `derive` says what the settings choose together (kind, recipe, threshold) and refuses choices that contradict.

A new setting is a field in `schema`.
"""
