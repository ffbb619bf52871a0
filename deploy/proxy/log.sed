# sed -u -E -f log.sed: a line of Apache's log, whose format is JSON, as JSON.
# A request that nobody has signed has an empty name, which Apache writes as two quotes of its own.
s/"user":"""",/"user":"-",/
# A byte that is no letter is \xc3 to Apache, and a vertical tab is \v. A backslash is \\ to both.
:again
s/(^|[^\])((\\\\)*)\\x([0-9a-f]{2})/\1\2\\u00\4/g
s/(^|[^\])((\\\\)*)\\v/\1\2\\u000b/g
t again
