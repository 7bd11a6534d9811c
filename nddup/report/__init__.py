"""The report of a run: `gather` collects what it shows, `data` shapes it, `write` leaves a page.

Imports `opened` and what `storage` says of folders; neither Spark nor what runs a job.
"""
