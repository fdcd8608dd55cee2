"""Methods that learn old tasks again with new ones: from kept samples, or from samples they make."""
