"""A function on all hosts of slices, or on the one host that has its GPUs: reserve all or none, call it on each,
determine why a host ended, and retry.

It knows Ray and `hardware`; neither outputs nor the meaning of the function.
"""
