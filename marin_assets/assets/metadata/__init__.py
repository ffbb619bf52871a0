"""What Dagster's page of an asset shows of its output: numbers, tables, plots, links.

May import marin_resources and Dagster.
"""
