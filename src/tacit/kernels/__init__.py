"""Compiled loops over arrays and tuples of them: no noise of their own, no parameters to validate.

    given           what kernels are handed: sparse tables, rows with what belongs to them, noise
    rows            norms and margins of rows; sums of clipped gradients, and of what text needs
    exact           sums over rows on a grid as whole numbers, for passes on all cores
    columns         a table by columns: margins, norms of rows, sums over columns
    coordinate      a pass of coordinate descent, with the noise it is handed
    dual            dual coordinate steps on batches of rows, with the noise they are handed
    frank_wolfe     steps on an l1 ball, for sparse and for dense rows
    moments         second moments and products for PCA
    scaling         centring, scaling and clipping of tables; histograms of magnitudes
    sigmoid         the logistic function in vector code
    any_order       sums in any order
    fingerprint     what tells that numbers have changed
    prefetch        ask memory for an entry before it is needed

A kernel handles each row by itself: a row's own values are a function of that row and of public numbers, to the last
bit, wherever the row stands and whoever else is there (BLAS does not promise that). So no function is compiled with
fastmath, whose flags let vector code and the code next to it round differently. Sums over rows are taken in the order
that is written, or by `any_order` in whatever order suits the processor; the slack in a sensitivity covers any order of
its depth. Sums of `exact` have none, as no addition is rounded. With zero noise a kernel is the textbook algorithm, and
is tested as such.
"""
