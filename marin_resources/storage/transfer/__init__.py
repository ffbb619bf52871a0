"""Transfers between regions: their prices, and the budget and ledger of the step that causes them.

May import `control`, `manifest` and the root files of `storage` below them; never `mirror`, which moves the bytes.
"""
