"""The page: what a run or a comparison did, in one HTML file that needs nothing else."""
