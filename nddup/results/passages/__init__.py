"""`nddup passages`: read a collection or the kept documents of a run, find what they repeat, write and prove it.

Start reading at `find_passages`. The mathematics is `nddup.passages`.
"""
