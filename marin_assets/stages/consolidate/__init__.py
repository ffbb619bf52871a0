"""Attributes applied to documents: what is kept, and the account of what is not."""
