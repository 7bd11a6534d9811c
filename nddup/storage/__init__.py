"""Files and folders of this machine: `run_folder` keeps the tables of a run; Hadoop's are in `nddup.spark`."""
