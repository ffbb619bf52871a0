"""Formulas of pages as TeX between dollars: of MathML, MathJax and KaTeX, AsciiMath, images and forums.

May import `html`, marin_assets.documents and marin_resources."""
