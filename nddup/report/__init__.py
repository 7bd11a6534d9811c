"""The report of a run: `gather` collects its content, `data` shapes it, `write` writes the page.

Imports `engines` and the folders of `storage`, but neither Spark nor the code that runs a job.
"""
