"""Control files: small files that are read and written by compare-and-swap, on a disk, GCS and S3.

May import the root files of `storage` (paths, filesystem, disk), and no other package.
"""
