"""Files and folders, local and Hadoop's: `session_files` reaches any path, `run_folder` keeps the tables of a run."""
