"""How the Java machine of a session is started: its options, the archive of its classes, what it says meanwhile.

Files of this machine are read here; nothing of Spark is called but by `session`, which puts the parts together.
"""
