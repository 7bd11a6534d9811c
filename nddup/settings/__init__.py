"""What a run can be told. Imports `nddup.errors`, and the rules that the settings choose between.

`schema` has every key and default, `load` reads files and assignments and refuses what is wrong, `derive` says what
the settings choose together: kind, recipe, threshold.
"""
