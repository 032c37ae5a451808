"""How far the rules of the solvers are from the best tuned settings, on sets that took no part in choosing them."""
