"""From MATCHES to CLUSTERS and KEEP on Spark. Start with `graph`, then `problems`, `mine_components`.

`problems` cuts a component into shares where one task is too small for it.
May import matching, mining and `nddup.spark`. All steps are lazy: no Spark action runs here.
"""
