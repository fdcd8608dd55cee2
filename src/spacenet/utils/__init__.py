"""Small helpers that every other package may use: files, seeds, named tensors, optional libraries."""
