"""Measurements of speed and quality, run as `python -m bench`; `README.md` describes each of them."""
