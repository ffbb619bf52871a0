"""Inputs of a training, checked before it begins: token caches, mixtures, the tokenizer and the start's weights.

May import the config, its specs and the files beside this folder that know no Levanter.
"""
