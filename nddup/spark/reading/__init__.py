"""Reading files on Spark. Imports `scanning`, what that imports, and `nddup.spark`; lazy, as every stage.

`scan` is the one pass over the files, for any consumer of `nddup.scanning`; `hadoop_files` cuts files,
and opens those that are read whole.
"""
