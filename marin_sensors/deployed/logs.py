"""Logs that wait on this machine for the bucket."""

from marin_sensors.waiting_logs import waiting_logs

logs = waiting_logs()
