"""Names of languages and scripts, and the thresholds that FineWeb-2 published for each language.

Tags are those of FineWeb-2 and GlotLID: a language by ISO 639-3 and a script by ISO 15924, such as "deu_Latn".
"""
