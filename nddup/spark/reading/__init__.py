"""The files of a run on Spark. Imports `scanning` and what it imports, and `nddup.spark`; lazy, as every stage.

`scan` is the one pass over the files, for any consumer of `nddup.scanning`; `splits` cuts files, `hadoop_files` opens
those that are read whole. `term_counts` and `shown_texts` finish what two of the consumers begin.
"""
