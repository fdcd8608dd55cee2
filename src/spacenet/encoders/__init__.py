"""Frozen pretrained networks that turn images, texts or sounds into features before anything is learned."""
