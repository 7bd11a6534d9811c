"""The kernels compiled once for an installation: `install` does it, `warm_up` knows the kernels of each command."""
