"""A run, from inputs to report: the package that acts. Imports everything but `results`, `commands` and `cli`.

`job` is a whole run; `pipeline` is the order of its stages, `pairing` and `clustering` the order within two of them,
all over `Job.save` in `state`.
"""
