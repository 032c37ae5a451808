"""Test scores at small budgets, next to the numbers that were asked for."""
