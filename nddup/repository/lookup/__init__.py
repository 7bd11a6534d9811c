"""Find the stored sketches that are near-duplicates of given ones. Pure: arrays in, arrays out, no file is touched.

Start with `feature_order`, the total order of one segment; `meetings` finds the candidates and compares them. May
import `matching`, `sketching` and the ground.
"""
