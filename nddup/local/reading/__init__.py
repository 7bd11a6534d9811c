"""Files are listed, read, cut and sketched by worker processes; texts and term counts are made by the same scan.

`scan` hands the parts to `workers`, which keep the processes alive; `worker` is what runs in one of them.
"""
