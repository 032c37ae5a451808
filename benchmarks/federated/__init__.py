"""The featurewise distributed Frank-Wolfe paper (Lou and Cheung 2020)."""
