"""The run folder: written by the load worker, read by everybody else."""
