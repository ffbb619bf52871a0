"""Recipes: experiments that show one way to build a model, each a file to copy and to point at data of your own.

Nothing imports them: the loader of experiments finds them by name. In Dagster their groups begin with `recipes_`."""
