"""Articles in JATS, the XML of journals, as Markdown.

jats_to_markdown.py  the stage: pages become documents
jats_content.py      the fields: what is kept of an article, and the names of what is cut
article.py           the parts of an article, in order
writer.py            the body: sections, paragraphs, lists, figures, formulas
citations.py         marks of references that are cut from a line
tables.py            tables as Markdown
"""
