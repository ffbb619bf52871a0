"""One publishable HTML page about any experiment: complete, running, failed, partitioned, or never run.

from_graph    the steps of an experiment of the code
from_record   the steps of a record of an experiment, also one of Marin's
page          the page of these steps; sections/ has the facts of each of its sections
addresses     the links of a page that a server shows; a page in a file has none

May import marin_assets.inspection and the packages below it; not Dagster or Ray.
"""
