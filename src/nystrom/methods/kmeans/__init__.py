"""K-means on Z, block by block."""
