"""Methods that give each task its own part of a network, or of a growing one."""
