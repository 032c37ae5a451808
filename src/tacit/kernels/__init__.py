"""Compiled loops over plain arrays: no noise, no parameters to validate, no classes.

    gradient   sums of clipped per-row gradients
    scaling    centring, scaling and clipping of tables; histograms of magnitudes

A kernel handles each row by itself, in a fixed order and without fastmath, so that one row's arithmetic never touches
another's (BLAS does, in the last bits). With zero noise a kernel is the textbook algorithm, and is tested as such.
"""
