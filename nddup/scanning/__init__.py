"""From the files of a collection to Arrow batches. Uses no Spark: imports `reading`, `sketching` and `nddup.tables`.

`collection` finds the files and decides how each is read. `whole_files`, `local_files` and `sketch_records` read
records; a consumer (`found.Consumer`) turns them into a table. Both engines call these functions in their workers.
"""
