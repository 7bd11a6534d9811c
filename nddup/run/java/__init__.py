"""How the JVM of a session is started: its options, the archive of its classes, and its messages meanwhile.

The modules read files of this machine. `nddup.run.session` puts them together; only `hadoop_settings` and
`remembered_names` call a running Spark session.
"""
