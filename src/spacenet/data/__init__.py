"""Data sets, readers of the user's own files, and the streams of tasks made from them."""
