"""Every class that can be saved, fitted in several ways: a new one is covered the day it is added here."""

import json
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

import tacit
from tacit import (
    PCA,
    ElasticNet,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivateEncoder,
    PrivateScaler,
    Ridge,
    make_private_pipeline,
)
from tacit.federated import (
    FeatureSharing,
    FederatedLasso,
    FederatedLinearSVC,
    FederatedLogisticRegression,
    Marginals,
    Party,
    Sketching,
)
from tacit.modelfiles import Column, TableModel
from tacit.solvers import Coordinate
from tacit.solvers.pca import VarianceReduced

quiet = pytest.mark.filterwarnings("ignore:.*(random_state is set|budget is too small|is not below 1/n):UserWarning")

WORDS = np.array(["low", "high"])


def problem(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 50.0, 0.1, 1.0] + [0.0, 300.0, 1.0, 2.0]
    return X, X[:, 0] + 2.0 * X[:, 3] + 0.1 * rng.normal(size=n)


X, VALUES = problem()
LABELS = (VALUES > 4.0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])
TEXTS = pd.DataFrame({"kind": np.resize(["x", "y", "é=ü"], 300), "a": X[:, 0], "size": np.resize(["S", "L"], 300)})
ENUM = pl.DataFrame({name: TEXTS[name].to_list() for name in TEXTS}).with_columns(
    pl.col("kind").cast(pl.Enum(["é=ü", "x", "y"])), pl.col("size").cast(pl.Enum(["S", "L"]))
)
BLOCKS = [np.clip(X[:, :1], -1, 1), np.clip(X[:, 2:], -1, 1)]


def parties(y):
    return [Party(BLOCKS[0], y, name="east"), Party(BLOCKS[1], y, name="west")]


STARTED = {
    "smoothness": "laplace",
    "smoothness_share": 0.1,
    "coef_init": np.array([1.0, 0.0, 0.0, 2.0]),
    "intercept_init": 0.5,
    "keep_path": True,
    "rescale": False,
}
CHOSEN = {"protocol": Marginals(n_selected=1), "sketch": Sketching(kind="gaussian", size=20)}


def federated(kind, y, **told):
    return kind(5.0, l1_radius=3.0, random_state=7, **told).fit(parties(y))


MAKERS = {
    "logistic": lambda: LogisticRegression(2.0, random_state=7).fit(X, LABELS),
    "logistic of texts": lambda: LogisticRegression(2.0, classes=["low", "high"]).fit(X, WORDS[LABELS]),
    "logistic of objects": lambda: LogisticRegression(2.0).fit(FRAME, WORDS.astype(object)[LABELS]),
    "logistic of truth": lambda: LogisticRegression(2.0).fit(X, LABELS == 1),
    "logistic of floats": lambda: LogisticRegression(2.0).fit(X, 2.0 * LABELS),
    "three classes": lambda: LogisticRegression(2.0).fit(X, np.digitize(VALUES, [3.0, 5.0])),
    "one against the rest": lambda: LogisticRegression(5.0, solver="dual").fit(X, np.digitize(VALUES, [3.0, 5.0])),
    "not private": lambda: LogisticRegression(np.inf, C=np.inf).fit(X, LABELS),
    "of sparse rows": lambda: LogisticRegression(np.float64(2.0), row_norm=np.float32(9.0)).fit(csr_array(X), LABELS),
    "selected": lambda: LogisticRegression(2.0, l1_radius=3.0).fit(csr_array(X), LABELS).sparsify(),
    "svc": lambda: LinearSVC(2.0, solver="coordinate").fit(X, LABELS),
    "linear": lambda: LinearRegression(2.0, adjacency="replace-one").fit(FRAME, VALUES),
    "bounded": lambda: LinearRegression(2.0, coef_bounds=(None, np.full(4, 9.0)), y_bounds=[0, 8]).fit(X, VALUES),
    "ridge": lambda: Ridge(2.0, alpha=0.5, y_bounds=(-9.0, 9.0)).fit(X, VALUES),
    "lasso": lambda: Lasso(2.0, solver=Coordinate(smoothness=np.ones(4))).fit(X, VALUES),
    "part of a pass": lambda: Lasso(2.0, bounds=(-9.0, 500.0), solver=Coordinate(n_passes=1.5, **STARTED)).fit(
        FRAME, VALUES
    ),
    "elastic net": lambda: ElasticNet(2.0).fit(X, VALUES),
    "pca": lambda: PCA(2, 2.0, whiten=True).fit(FRAME),
    "pca in noise": lambda: PCA(None, 0.01).fit(X),
    "stochastic pca": lambda: PCA(2, 5.0, solver="stochastic").fit(X),
    "pca above the noise": lambda: PCA("noise", 5.0, solver=VarianceReduced(n_snapshots=2, clip=0.5)).fit(X),
    "pca of declared columns": lambda: PCA(2, 2.0, bounds={"a": (-3, 3)}).fit(FRAME),
    "scaler": lambda: PrivateScaler(2.0).fit(FRAME),
    "scaler of declared columns": lambda: PrivateScaler(bounds=(0.0, 1.0)).fit(FRAME),
    "encoder": lambda: PrivateEncoder(5.0, missing_indicator=["a"]).fit(TEXTS),
    "encoder of a vote": lambda: PrivateEncoder(5.0, parse=["size", "a"]).fit(TEXTS.astype({"a": str})),
    "encoder of declared types": lambda: PrivateEncoder(trust_dtypes=True).fit(
        TEXTS.astype({"kind": "category", "size": "category"})
    ),
    "encoder of an enum": lambda: PrivateEncoder().fit(ENUM),
    "encoder of declared ones": lambda: PrivateEncoder(categories={0: ["x"], "size": ("S", "L")}).fit(TEXTS),
    "pipeline": lambda: make_private_pipeline(
        PrivateEncoder(), LogisticRegression(bounds={"a": (-3.0, 3.0)}), epsilon=5.0, random_state=7
    ).fit(TEXTS, WORDS[LABELS]),
    "pipeline of three": lambda: make_private_pipeline(
        PrivateEncoder(max_categories=5), PrivateScaler(), Ridge(), epsilon=5.0, shares={"privateencoder": 0.3}
    ).fit(TEXTS, VALUES),
    "pipeline with steps of others": lambda: make_private_pipeline(
        PrivateEncoder(), "passthrough", FunctionTransformer(np.tanh), Normalizer("l1"), Ridge(), epsilon=5.0
    ).fit(TEXTS, VALUES),
    "pipeline after declared categories": lambda: make_private_pipeline(
        OneHotEncoder(categories=[["x", "y"], ["S", "L"]], handle_unknown="ignore", sparse_output=False),
        Binarizer(threshold=0.5),
        LogisticRegression(bounds=(0, 1)),
        epsilon=5.0,
    ).fit(TEXTS[["kind", "size"]], LABELS),
    "pipeline after codes": lambda: make_private_pipeline(
        OrdinalEncoder(categories=[[1.0, 2.0, 3.0]], handle_unknown="use_encoded_value", unknown_value=-1), Ridge()
    ).fit(np.resize([1.0, 2.0, 3.0], (300, 1)), VALUES),
    "pipeline of words": lambda: make_private_pipeline(
        HashingVectorizer(n_features=2**8, alternate_sign=False), LogisticRegression(solver="text"), epsilon=5.0
    ).fit(TEXTS["kind"].tolist(), LABELS),
    "clipper": lambda: tacit.RowClipper(2.0).fit(X),
    "federated lasso": lambda: federated(FederatedLasso, VALUES, y_bounds=(0.0, 8.0)),
    "federated logistic": lambda: federated(FederatedLogisticRegression, WORDS[LABELS], entry_bound=1.0, **CHOSEN),
    "federated classes": lambda: federated(FederatedLogisticRegression, np.digitize(VALUES, [3.0, 5.0])),
    "federated svc": lambda: federated(FederatedLinearSVC, LABELS, protocol=FeatureSharing(n_iter=3)),
    "table": lambda: TableModel(
        Ridge(2.0).fit(X, VALUES),
        (Column("a"), Column("kind", ("x", "y"), "x"), Column("d", None, 2.0)),
        "wage",
        (("public", "what was declared"),),
    ),
}


@cache
def made(name):
    """The fitted model; tests do not change it."""
    return MAKERS[name]()


def rows(name):
    """What the model predicts from, or transforms."""
    model = made(name)
    if name == "table":
        return pd.DataFrame({"kind": ["x", "y", None], "d": [1.0, np.nan, 3.0], "a": [0, 1, 2], "more": 0.0})
    if name.startswith("federated"):
        return BLOCKS
    if name == "pipeline after declared categories":
        return TEXTS[["kind", "size"]]
    if name == "pipeline after codes":
        return np.array([[1.0], [3.0], [5.0]])
    if name == "pipeline of words":
        return TEXTS["kind"].tolist()
    if name.startswith(("encoder", "pipeline")):
        return TEXTS
    return FRAME if hasattr(model, "feature_names_in_") else csr_array(X) if "sparse" in name else X


def text_of(model, folder):
    """What is in the file of a model."""
    tacit.save(model, folder / "model.json")
    return (folder / "model.json").read_text()


def loaded(document, folder):
    """The model of a document, or of the text of one."""
    path = folder / "changed.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return tacit.load(path)
