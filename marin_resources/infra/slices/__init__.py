"""The slices of a cluster: those that are wanted, those that Google has, and what brings the second to the first.

A slice is a queued resource of Cloud TPU, which joins the cluster by its start-up script.
"""
