"""Trainings as the runs of a scaling law: their table, and forecasts beside what came true."""
