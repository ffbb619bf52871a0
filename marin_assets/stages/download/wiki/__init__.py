"""Dumps of Wikipedia and its sister wikis.

read_wiki_html.py  the stage: articles of HTML dumps become pages, documents whose text is HTML
dump_lines.py      the lines of a dump, a tar archive that is read once
articles.py        one line as a page, or the reason why it is none
versions.py        articles that occur twice
"""
