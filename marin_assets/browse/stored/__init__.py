"""Outputs below a prefix: their states, their files with rows, their lineage, their tokens. Nothing is written."""
