"""The sparse DP Frank-Wolfe paper (Raff, Khanna, Lu 2023)."""
