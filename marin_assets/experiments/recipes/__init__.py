"""Recipes: experiments that show one way to build a model, each a file to copy and to point at data of your own.

The loader of experiments finds them by name; a recipe imports another whose steps it continues. In Dagster their groups
begin with `recipes_`."""
