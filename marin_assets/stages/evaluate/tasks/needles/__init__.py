"""Questions about facts hidden in long contexts: written from documents, scored, and mapped by length and depth.

The forms are those of RULER (Hsieh et al. 2024, arXiv 2404.06654), with sentences of our own.
"""
