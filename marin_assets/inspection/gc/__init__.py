"""Outputs that nothing needs: the needed ones and their reasons, the remaining ones, and the cost to make them again.

It reads a few listings and small files, and changes nothing. `marin_resources/storage/collect` withdraws and removes.
"""
