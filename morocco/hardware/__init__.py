"""The machine: its processes, control groups and GPUs."""
