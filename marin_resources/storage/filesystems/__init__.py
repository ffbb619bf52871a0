"""Filesystems: the operations of a disk that fsspec lacks, and the fsspec filesystem of a path."""
