"""What several methods have in common: kinds of networks to start from, memories, penalties."""
