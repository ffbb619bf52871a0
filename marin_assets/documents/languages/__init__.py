"""Names of languages and scripts, and what FineWeb-2 published for each language.

Tags are those of FineWeb-2 and GlotLID: a language by ISO 639-3 and a script by ISO 15924, such as "deu_Latn".
"""
