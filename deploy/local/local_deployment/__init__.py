"""The whole deployment on one machine, on loopback, to rehearse with: `make deploy-local`.

Its processes are those of a team's deployment, with the files that a team's has: Postgres, object storage, a Ray
cluster with a token, the code location, the daemon, two webservers, and the proxy with the login. Three of them stand
for what a team has elsewhere: the object storage is the tests' GCS with a file behind it, the OpenID Connect provider
takes any password, and supervisord stands for systemd.
"""
