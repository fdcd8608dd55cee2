"""Frozen pretrained networks that turn images, texts, sounds or other raw samples into features before anything is learned."""
