"""What is done with a finished run: shown, checked, evaluated, reported. Imports `run` and everything below it."""
