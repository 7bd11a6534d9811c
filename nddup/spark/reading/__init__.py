"""Reading files on Spark. Imports `scanning`, what that imports, and `nddup.spark`; lazy, as every stage.

`scan` is the one pass over the files, for any consumer of `nddup.scanning`; `splits` cuts files, and `hadoop_files`
opens those that are read whole. `term_counts` and `shown_texts` finish the work of two of the consumers.
"""
