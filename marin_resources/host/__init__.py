"""This process and its machine: its identity, its imports, and requests over HTTP from it."""
