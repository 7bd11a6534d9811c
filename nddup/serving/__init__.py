"""`nddup serve`: look-ups in a repository over HTTP.

look_ups      the addresses, who may ask, and the queue in which look-ups wait
bodies        the body of a request -> the text to look up
connections   the server: requests are read whole, within bounds of time and bytes, and end before the process does
counts        how many requests of which status, and how long look-ups took
page          the page for people
"""
