"""What is done with a finished run: shown, checked, evaluated. Imports `run` and everything below it."""
