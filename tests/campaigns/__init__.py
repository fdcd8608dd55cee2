"""Long campaigns against faults, killed processes and several writers; the suite runs a small share of each."""
