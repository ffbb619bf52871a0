"""Which outputs nothing needs: what is needed and why, what is left, and what it would cost to make again.

It reads a few listings and small files, and changes nothing. `marin_resources/storage/collect` withdraws and removes.
"""
