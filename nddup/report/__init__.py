"""The report of a run: `gather` collects what it shows, `data` shapes it, `write` leaves a page.

Imports `opened`, and neither Spark nor what runs a job.
"""
