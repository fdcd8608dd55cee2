"""A model behind HTTP that keeps answering while it learns."""
