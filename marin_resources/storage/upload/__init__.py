"""Upload: put a local file's bytes into a bucket as one object, whole or not at all.

May import `control` and the root files of `storage` below it. `storage.files` is built on it.
"""
