"""The verbs of `marin`: a file with `add_options(parser)` and `run(options)` each, or a folder with verbs of its own.

May import the rest of `marin_assets.cli`; a verb is imported only when it is called.
"""
