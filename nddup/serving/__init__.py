"""`nddup serve`: look-ups in a repository over HTTP.

look_ups      the addresses, who may ask, the queue in which look-ups wait, their counts, and the page for people
bodies        the body of a request -> the text to look up
connections   the server: requests are read whole, within bounds of time and bytes, and end before the process does
"""
