"""The resources and rights that a project of Google Cloud needs before a cluster is brought up in it.

resource   one resource of Google's, as a request that creates it
network    the network: subnetworks, firewall, NAT, addresses of heads
rights     service accounts, and the rights of each, with the reason
stores     buckets, the registry of images, the secret with the token
wanted     all of it, for the clusters of the catalogue
apply      read the resources that exist, and create the missing ones
"""
