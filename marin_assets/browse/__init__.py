"""The data browser: pages of the rows of outputs, served on this machine or in a deployment. Started by `marin browse`.

app       the server: routes, and the road of one request
web/      hosts, methods and headers; pages that are sent while they are written
places    which paths are shown
limits    threads, time and bytes of a request
rows/     pages of rows, by whatever format; filters, samples, search
stored/   states and files of outputs, their lineage, their tokens; records of experiments
cells/    values as short texts
pages/    one page a file: the facts that its template shows
links     to Dagster's page of an asset, and from it
render    templates/ and static/, as responses

It reads and never writes. May import marin_assets.experiment_page, whose pages it shows, marin_assets.catalog,
documents and stages, and marin_resources. Dagster is not loaded. A value of a file is a text of a stranger: it reaches
a page through Jinja's escapes alone.
"""
