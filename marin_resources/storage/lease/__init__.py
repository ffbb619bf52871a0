"""The lease of an output: acquire, renew, release and take over the right to write it.

May import `control` and the root files of `storage` below it; never the output that it guards.
"""
