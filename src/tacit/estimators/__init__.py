"""What users import: scikit-learn estimators that spend a privacy budget.

An estimator validates and composes; `fit` is the path of a fit; no numerics and no noise live here.
"""

from tacit.estimators.classifiers import LinearSVC, LogisticRegression
from tacit.estimators.fit import FewRowsWarning
from tacit.estimators.pca import PCA
from tacit.estimators.pipeline import PrivatePipeline, make_private_pipeline
from tacit.estimators.regressors import ElasticNet, Lasso, LinearRegression, Ridge

__all__ = [
    "PCA",
    "ElasticNet",
    "FewRowsWarning",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PrivatePipeline",
    "Ridge",
    "make_private_pipeline",
]
