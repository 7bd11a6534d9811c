"""Files and folders of this machine: `run_folder` stores the tables of a run; Hadoop's are in `nddup.spark`."""
