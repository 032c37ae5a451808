"""The DP-PCA paper (Shang et al. 2021)."""
