"""Remove what identifies a machine, a person or an account from texts that are published.

May import marin_resources.ray_tpu, for the redaction of secrets, and the packages below it.
"""
