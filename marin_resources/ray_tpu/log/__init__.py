"""The log of an attempt: redirect, redact, store and follow what a worker and its children print.

May import storage. Imports neither Ray nor another package of ray_tpu.
"""
