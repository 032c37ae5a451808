"""The DP-SCD paper (Damaskinos et al. 2021)."""
