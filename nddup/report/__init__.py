"""The report of a run: `gather` collects what it shows, `data` shapes it, `write` leaves a page."""
