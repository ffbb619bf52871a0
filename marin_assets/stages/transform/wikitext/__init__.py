"""Wikitext to Markdown, without the text that templates would have written.

wikitext_to_markdown.py  the stage
content.py               the fields of the content, and names of namespaces in languages
balance.py               the text without templates, references, comments, HTML and markup that has no end
sections.py              the parsed text as Markdown, section by section; what a link shows
wiki_tables.py           a table as Markdown
"""
