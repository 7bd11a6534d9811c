"""`nddup serve`: look-ups in a repository over HTTP.

look_ups      the addresses, who may ask, what a request holds, the queue in which look-ups wait, and their counts
connections   the server: requests are read whole, within bounds of time and bytes, and end before the process does
"""
