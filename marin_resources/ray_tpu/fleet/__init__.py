"""A fleet: several clusters of the catalogue as one back end, with one home prefix. May import the packages below it.

fleet      the clusters, their regions and the home
choose     which cluster a step goes to
backend    the back end that sends each task there
"""
