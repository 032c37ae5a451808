"""What the sparse DP Frank-Wolfe paper prints."""

SPEED = {  # Table 3: at epsilon 1 and 0.1, Algorithm 2 + 4 and Algorithm 2
    "News20": {1.0: (81.69, 17.83), 0.1: (93.51, 19.05)},
    "URL": {1.0: (9.99, 1.02), 0.1: (2451.80, 95.58)},
    "RCV1": {1.0: (19.44, 1.36), 0.1: (20.37, 1.82)},
    "Web": {1.0: (581.25, 21.24), 0.1: (537.65, 20.79)},
    "KDDA": {1.0: (1239.64, 206.50), 0.1: (2245.56, 368.96)},
}
SCORES = {  # Table 4: accuracy, AUC, sparsity
    "RCV1": (0.9053, 0.9729, 0.0581),
    "News20": (0.9237, 0.9865, 0.7519),
    "news20": (0.9237, 0.9865, 0.7519),  # of the paper's News20, which has the same texts
}
