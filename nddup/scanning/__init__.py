"""From the files of a collection to Arrow batches. Pure: imports `reading`, `sketching` and `nddup.tables`.

`collection` finds the files and tells how each is read. `whole_files`, `chunks`, `given_texts` and `local_files` read
records; a consumer (`found.Consumer`) makes a table of them. Both engines call these functions in their workers.
"""
