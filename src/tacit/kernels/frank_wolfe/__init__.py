"""Frank-Wolfe on an l1 ball: a gradient in whole numbers, which steps keep up to date.

    rows       what a row adds to the whole gradient
    steps      sparse rows: a step changes the gradient only where it has to; walks of draws and steps
    follow     sparse rows: a gradient that follows the slopes, row by row or anew
    columns    sparse rows by column
    lazy       sparse rows and the squared loss: a gradient that is linear in the scale of the weights
    dense      dense rows: all of them are looked at in every step

Row i has entries x_ij, clipped to [-bound, bound], a margin m_i and the slope q_i of its loss there. It adds
trunc(unit q_i x_ij) to entry j of the whole gradient `scores`, so their sums are exact and do not depend on the order
of rows.

Steps are short, so what belongs together comes in plain tuples: Python hands these over in less time than named ones.
"""
