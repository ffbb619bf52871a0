"""The pages of the data browser, one a file: a function from a request to the facts of its template."""
