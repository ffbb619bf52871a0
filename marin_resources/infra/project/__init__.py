"""What a project of Google Cloud shall have before a cluster is brought up in it, and how it gets that.

resource   one thing of Google's, as a request that creates it
network    the network: subnetworks, firewall, NAT, addresses of heads
rights     service accounts, and what each may do, and why
stores     buckets, the registry of images, the secret with the token
wanted     all of it, for the clusters of the catalogue
apply      look at what is there, and create what is not
"""
