"""Class statistics: what is kept of a class besides the network, on features that never change."""
