"""The content of papers that are LaTeXML's HTML.

May import `html`, and what that may."""
