"""Wait for a job: why it has not begun, what it prints, how it has ended.

May import the storage, `log`, `wire` and the rest of `cluster` below `batch jobs`.
"""
