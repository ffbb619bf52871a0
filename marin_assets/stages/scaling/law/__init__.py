"""The law of a loss by parameters and tokens: its formula, the ways to fit it, and how far a fit can be trusted.

Arithmetic on arrays alone: nothing here reads or writes a file.
"""
