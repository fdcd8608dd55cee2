"""The service: a model behind HTTP, that goes on answering while it learns."""
