"""From RECORDS to PAIRS on Spark. Start with `collapse`, `candidates` and `expand`.

`prefix_exchange` and `candidates` are the tasks between which sketches and postings move. `confirm` handles
components with too many pairs, and sketches with different moduli. May import sketching, matching, mining and
`nddup.spark`. All steps are lazy: no Spark action runs here.
"""
