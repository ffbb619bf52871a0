"""Named sets of thresholds, one YAML file for each family of filters, with their sources.

Data only: this folder has no code.
"""
