"""Find the stored sketches that are near-duplicates of given ones. Pure: arrays in, arrays out, no file is touched.

Start with `meetings`: the total order of one segment, the search for candidates, and their comparison. May
import `matching`, `sketching` and the ground.
"""
