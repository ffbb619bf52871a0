"""Perplexity and bits per byte on named sets of texts, by domain, and the loss of every token.

layouts               rows of known sets as texts with a domain
token_losses          the loss of every token of a text, in nats
measure_perplexity    the stage: sets and a model to numbers with their errors, and to tables of tokens
"""
