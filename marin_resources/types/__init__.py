"""Types that every package shares: outputs and their records, keys of partitions, paths, control files, errors.

May import no other package.
"""
