"""Adopted outputs: data that were made elsewhere serve as the output of a step, where they are. Nothing is copied.

An adoption is an attempt that claims and publishes through the store. Its control files are at the output's own path.
May import `output` and what is below it.
"""
