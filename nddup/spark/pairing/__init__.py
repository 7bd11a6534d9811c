"""From RECORDS to PAIRS on Spark. Start with `collapse` and `candidates`.

`prefix_exchange` and `candidates` are the tasks between which sketches and postings move; `candidates` also compares
sketches of different moduli. `confirm` compares texts, and searches components with too many pairs. May import
sketching, matching, mining and `nddup.spark`. All steps are lazy: no Spark action runs here.
"""
