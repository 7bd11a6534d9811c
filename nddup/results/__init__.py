"""Commands that read a finished run: show, check, evaluate and others. Imports `run` and everything below it."""
