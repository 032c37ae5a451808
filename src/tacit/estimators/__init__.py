"""What users import: scikit-learn estimators that spend a privacy budget.

An estimator validates and composes; `driver` is the path of a fit; no numerics and no noise live here.
"""

from tacit.estimators.driver import FewRowsWarning
from tacit.estimators.lasso import ElasticNet, Lasso
from tacit.estimators.logistic import LogisticRegression
from tacit.estimators.pca import PCA
from tacit.estimators.regression import LinearRegression, Ridge
from tacit.estimators.svc import LinearSVC

__all__ = [
    "PCA",
    "ElasticNet",
    "FewRowsWarning",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Ridge",
]
