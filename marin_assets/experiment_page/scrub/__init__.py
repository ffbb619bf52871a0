"""Remove what identifies a machine, a person or an account from texts that are published.

May import marin_resources.
"""
