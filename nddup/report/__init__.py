"""The report of a run: `gather` collects its `content` and writes the folder, `data` shapes the chunks of the page.

Imports `engines` and the folders of `storage`, but neither Spark nor the code that runs a job.
"""
