"""The slices of a cluster: the requested ones, the ones that Google has, and the controller that reconciles the two.

A slice is a queued resource of Cloud TPU, which joins the cluster by its start-up script.
"""
