"""Benchmarks, each run as `python -m benchmarks.<folder>`; their pages are in `results`."""
