"""The project {{project}}: its experiments, and its sensors and schedules."""
