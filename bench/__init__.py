"""Measurements of speed and quality; `README.md` says what each one measures. Run as `python -m bench`."""
