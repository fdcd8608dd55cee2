"""The functions of `import spacenet`. The command line calls these and nothing else."""
