"""The DP-CD paper (Mangold et al. 2022)."""
