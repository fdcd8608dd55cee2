"""Long campaigns against faults, killed processes, slow clients and lost clusters; the suite runs a share of each."""
