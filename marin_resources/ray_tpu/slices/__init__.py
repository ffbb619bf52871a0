"""A function on all hosts of slices, or on the one host that has its GPUs: reserve all or none, call it on each, tell
why a host ended, and how often that may happen.

It knows Ray and `hardware`; neither outputs nor what the function is.
"""
