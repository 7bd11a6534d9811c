"""A run against a list of duplicates, on Spark: `list_tables` reads the list, `compare_lists` compares."""
