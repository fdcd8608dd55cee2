"""The ledger, and the paper's algorithms on it. Knows nothing of data, methods or training loops."""
