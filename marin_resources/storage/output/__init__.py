"""The store of outputs: status, record, commit object, attempts, job notes, leftovers and verification.

May import every package of `storage` but `mirror`, and `wire` for the tasks in job notes.
"""
