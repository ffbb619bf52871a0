"""XML of foreign origin: read without entities and external files, and its inline text.

parse.py         a whole text, or the elements of a stream in flat memory
inline.py        the text of an element in one line: superscripts, subscripts and formulas stay readable
superscripts.py  one superscript or subscript
math_text.py     one formula of MathML

lxml is imported late, within functions. May import marin_resources and marin_assets.documents.
"""
