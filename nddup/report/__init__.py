"""The report of a run: `gather` collects what it shows, `data` shapes it, `write` leaves a page, `folder` does all.

May import `results`, `run` and everything below them. `gather` runs Spark jobs; `shown`, `data` and `write` need none.
"""
