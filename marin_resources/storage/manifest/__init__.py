"""The manifest: every data file of an output with its size and checksum.

May import `control` and the root files of `storage` below it; never `files`, `lease` or `output`.
"""
