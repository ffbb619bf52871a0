"""Facts of accelerators by their names: chips, hosts, topology, memory, peak compute, zones."""
