"""Metadata of an asset's output for its page in Dagster: numbers, tables, plots, links.

May import marin_resources and Dagster.
"""
