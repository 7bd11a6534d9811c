"""From MATCHES to CLUSTERS and KEEP on Spark. Start with `graph`, then `problems`, `mine_components`.

`shares` does the same where one task is too small for a component.
May import matching, mining and `nddup.spark`. All steps are lazy: no Spark action runs here.
"""
