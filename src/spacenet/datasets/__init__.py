"""Data sets: where they come from, how they are checked and read. Raw arrays, no tasks yet."""
