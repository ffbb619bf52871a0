"""Each file here has sensors, schedules, or assets that are no steps. The code location has those of all files."""
