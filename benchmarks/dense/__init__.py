"""Test scores of every solver on real data, next to the peers."""
