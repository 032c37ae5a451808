"""What each set is: its task and shape, where it comes from, which paper uses it, and what to take care of."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Task = Literal["binary", "multi-class", "regression"]

PAPERS = MappingProxyType(
    {
        "dp-cd": "Mangold, Bellet, Salmon, Tommasi: Differentially Private Coordinate Descent for Composite Empirical "
        "Risk Minimization (ICML 2022)",
        "dp-scd": "Damaskinos, Mendler-Dünner, Guerraoui, Papandreou, Parnell: Differentially Private Stochastic "
        "Coordinate Descent (AAAI 2021)",
        "sparse-frank-wolfe": "Raff, Khanna, Lu: Scaling Up Differentially Private LASSO Regularized Logistic "
        "Regression via Faster Frank-Wolfe Iterations (NeurIPS 2023)",
        "featurewise-frank-wolfe": "Lou, Cheung: An Uplink Communication-Efficient Approach to Featurewise Distributed "
        "Sparse Optimization With Differential Privacy",
        "dp-pca": "Shang, Zhang, Xu, Liu, Liu: Principal Component Analysis in the Stochastic Differential Privacy "
        "Model",
    }
)


@dataclass(frozen=True)
class Classes:
    """What the classes of a set are called, what its source writes for them, and what `load` makes of it."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Dataset:
    """What the catalogue says of one set.

    Parameters
    ----------
    name, title : str
        What `load` calls it, and what it is.
    task : {"binary", "multi-class", "regression"}
    shape : (int, int)
        Rows and columns. For text, the columns are those of the counts.
    papers : tuple of str
        Keys of `PAPERS`; empty for sets that no paper uses.
    sparse : bool
        Whether it comes as CSR or dense.
    features : tuple of str
        The forms its columns can take; the first is the default.
    classes : Classes or None
        What there is to tell apart; None for a regression.
    openml : int or None
        The id on OpenML.
    scikit_learn : str or None
        The function of `sklearn.datasets` that has it.
    libsvm : tuple of str
        Its files on the LIBSVM site, which can be put into the local folder as they are; a second one is a test set.
    nominal : {"numbers", "one-hot"}
        What becomes of columns of categories that come from OpenML.
    unknown : tuple of str
        Columns of categories in which missing values get a category of their own.
    cautions : tuple of str
        What to take care of.
    """

    name: str
    title: str
    task: Task
    shape: tuple[int, int]
    papers: tuple[str, ...] = ()
    sparse: bool = False
    features: tuple[str, ...] = ("standard",)
    classes: Classes | None = None
    openml: int | None = None
    scikit_learn: str | None = None
    libsvm: tuple[str, ...] = ()
    nominal: Literal["numbers", "one-hot"] = "numbers"
    unknown: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def bundled(self) -> bool:
        """Whether it is installed with scikit-learn, so that nothing is downloaded."""
        return self.scikit_learn is not None and self.scikit_learn.startswith("load_")

    @property
    def downloadable(self) -> bool:
        """Whether scikit-learn or OpenML has it."""
        return self.scikit_learn is not None or self.openml is not None

    @property
    def text(self) -> bool:
        """Whether it is word counts, to be turned into features."""
        return "hashed" in self.features

    @property
    def sources(self) -> str:
        """Where it comes from when there is no local file."""
        if self.scikit_learn is not None:
            return f"scikit-learn ({self.scikit_learn})"
        return "local folder only" if self.openml is None else f"OpenML ({self.openml})"


_TEXT = ("hashed", "counts", "tf-idf")
_SIGNS = Classes(("-1", "+1"), ("-1", "1"), (-1, 1))
_DIGITS = tuple("0123456789")
_IDF = "its term weights (idf) were computed over rows, so a privacy claim on it does not hold"
_BY_HAND = "download its files from the LIBSVM site into the local folder"


def _classes(*names: str, labels: tuple[str, ...] = ()) -> Classes:
    """Classes with the codes 0, 1 ..."""
    return Classes(names, labels or names, tuple(range(len(names))))


_ALL = (
    Dataset(
        "california_housing",
        "House values of Californian districts, in 100,000 dollars",
        "regression",
        (20_640, 8),
        ("dp-cd",),
        scikit_learn="fetch_california_housing",
        cautions=("features on very different scales",),
    ),
    Dataset(
        "elec2",
        "Electricity prices in New South Wales: up or down",
        "binary",
        (45_312, 8),
        ("dp-cd",),
        classes=_classes("DOWN", "UP"),
        openml=151,
        cautions=("ordered in time: a random split is optimistic",),
    ),
    Dataset(
        "adult",
        "Census income above 50,000 dollars; 6 numeric columns, then one column for each category",
        "binary",
        (48_842, 108),
        ("dp-scd",),
        classes=_classes("<=50K", ">50K"),
        openml=1590,
        nominal="one-hot",
        unknown=("workclass", "occupation", "native_country"),
        cautions=(
            "fnlwgt, a survey weight up to 1.5 million, is raw: drop it or clip it",
            "the paper has 81 columns and replaces missing values by the most frequent one; here they are a category",
        ),
    ),
    Dataset(
        "phishing",
        "Web sites, legitimate or phishing; one column for each category, rows of norm 1",
        "binary",
        (11_055, 68),
        ("dp-scd",),
        features=("one-hot", "raw"),
        classes=_classes("phishing", "legitimate", labels=("-1", "1")),
        openml=4534,
        nominal="one-hot",
        cautions=("the columns of the one-hot form come in another order from OpenML than in LIBSVM's file",),
    ),
    Dataset(
        "year_prediction_msd",
        "The year of a song from its timbre (YearPredictionMSD)",
        "regression",
        (515_345, 90),
        ("dp-scd",),
        openml=44027,
        libsvm=("YearPredictionMSD", "YearPredictionMSD.t"),
        cautions=("the published split is known only from LIBSVM's files",),
    ),
    Dataset(
        "msd_subset_year",
        "The year of a song from its timbre: the Million Song subset, the columns of YearPredictionMSD on other songs",
        "regression",
        (4_680, 90),
        ("dp-scd",),
        cautions=("a stand-in for year_prediction_msd, which is a hundred times larger",),
    ),
    Dataset(
        "rcv1",
        "Reuters stories: CCAT or ECAT against GCAT or MCAT (LIBSVM's rcv1.binary, training part)",
        "binary",
        (20_242, 47_236),
        ("sparse-frank-wolfe", "featurewise-frank-wolfe"),
        sparse=True,
        classes=_SIGNS,
        scikit_learn="fetch_rcv1",
        libsvm=("rcv1_train.binary",),
        cautions=(_IDF,),
    ),
    Dataset(
        "news20",
        "20 Newsgroups: comp and sci against the rest; `newsgroup` has the 20 classes",
        "binary",
        (18_846, 130_108),
        ("sparse-frank-wolfe",),
        sparse=True,
        features=_TEXT,
        classes=_classes("rest", "comp+sci"),
        scikit_learn="fetch_20newsgroups_vectorized",
        cautions=(
            "a stand-in for news20_binary, which has ten times the columns",
            "counts and tf-idf have a vocabulary taken from rows: make no privacy claim on them",
            "words found in no training row are left out, so of the hashed rows only those with is_test False depend "
            "on no other row",
        ),
    ),
    Dataset(
        "news20_binary",
        "20 Newsgroups as LIBSVM's news20.binary",
        "binary",
        (19_996, 1_355_191),
        ("sparse-frank-wolfe",),
        sparse=True,
        classes=_SIGNS,
        libsvm=("news20.binary",),
        cautions=(_BY_HAND,),
    ),
    Dataset(
        "url",
        "Malicious addresses (LIBSVM's url)",
        "binary",
        (2_396_130, 3_231_961),
        ("sparse-frank-wolfe",),
        sparse=True,
        classes=_SIGNS,
        libsvm=("url_combined",),
        cautions=(_BY_HAND, "some columns are dense, the rest very sparse", "needs several GB of memory"),
    ),
    Dataset(
        "webspam",
        "Web spam as counts of three letters (LIBSVM's webspam, trigram)",
        "binary",
        (350_000, 16_609_143),
        ("sparse-frank-wolfe",),
        sparse=True,
        classes=_SIGNS,
        libsvm=("webspam_wc_normalized_trigram.svm",),
        cautions=(f"{_BY_HAND} and unpack them (xz)", "needs tens of GB of memory"),
    ),
    Dataset(
        "kdda",
        "Answers of pupils to algebra questions (LIBSVM's kdda, training part)",
        "binary",
        (8_407_752, 20_216_830),
        ("sparse-frank-wolfe",),
        sparse=True,
        classes=_classes("0", "1"),
        libsvm=("kdda",),
        cautions=(_BY_HAND, "needs several GB of memory"),
    ),
    Dataset(
        "colon",
        "Colon tissue from gene expression (Alon 1999)",
        "binary",
        (62, 2_000),
        ("featurewise-frank-wolfe",),
        classes=_classes("Abnormal", "Normal"),
        cautions=("raw intensities", "too few rows for a split: cross-validate"),
    ),
    Dataset(
        "colon_libsvm",
        "Colon tissue from gene expression, standardised (LIBSVM's colon-cancer, as the paper has it)",
        "binary",
        (62, 2_000),
        ("featurewise-frank-wolfe",),
        classes=_SIGNS,
        openml=1432,
        libsvm=("colon-cancer",),
        cautions=("its columns were standardised over all rows, so a privacy claim on it does not hold",),
    ),
    Dataset(
        "leukemia_golub",
        "Kinds of leukemia from gene expression (Golub 1999)",
        "binary",
        (72, 7_129),
        ("featurewise-frank-wolfe",),
        classes=_classes("ALL", "AML"),
        openml=1104,
        cautions=(
            "raw intensities; LIBSVM's leukemia, which the paper has, is standardised",
            "too few rows for a split: cross-validate",
        ),
    ),
    Dataset(
        "a9a",
        "Census income above 50,000 dollars, all columns binary (LIBSVM's a9a, training part, then test part)",
        "binary",
        (48_842, 123),
        ("dp-pca",),
        sparse=True,
        classes=_SIGNS,
        openml=1430,
        cautions=("its numeric columns were cut at quantiles of the rows",),
    ),
    Dataset(
        "mnist",
        "Handwritten digits, 28 x 28 pixels from 0 to 255",
        "multi-class",
        (70_000, 784),
        ("dp-pca",),
        classes=_classes(*_DIGITS),
        openml=554,
        cautions=("divide by 255",),
    ),
    Dataset(
        "cifar10",
        "Small colour images of ten kinds of things, 32 x 32 x 3 values",
        "multi-class",
        (60_000, 3_072),
        ("dp-pca",),
        classes=_classes(*_DIGITS),
        openml=40927,
        cautions=("reading it from OpenML is slow and needs several GB of memory",),
    ),
    Dataset(
        "real_sim",
        "Stories from real and simulated vehicles and aviation (LIBSVM's real-sim)",
        "binary",
        (72_309, 20_958),
        ("dp-pca",),
        sparse=True,
        classes=_SIGNS,
        openml=1578,
        libsvm=("real-sim",),
        cautions=(_IDF,),
    ),
    Dataset(
        "sms_spam",
        "Text messages, spam or not",
        "binary",
        (5_574, 8_713),
        sparse=True,
        features=_TEXT,
        classes=_classes("ham", "spam"),
        cautions=("counts and tf-idf have a vocabulary taken from all rows: make no privacy claim on them",),
    ),
    Dataset(
        "breast_cancer",
        "Tumours from images of cells (Wisconsin, diagnostic)",
        "binary",
        (569, 30),
        classes=_classes("malignant", "benign"),
        scikit_learn="load_breast_cancer",
        cautions=("features on very different scales",),
    ),
    Dataset(
        "digits",
        "Handwritten digits, 8 x 8 values from 0 to 16",
        "multi-class",
        (1_797, 64),
        classes=_classes(*_DIGITS),
        scikit_learn="load_digits",
        cautions=("divide by 16",),
    ),
    Dataset(
        "diabetes",
        "How diabetes went on after a year",
        "regression",
        (442, 10),
        scikit_learn="load_diabetes",
        cautions=("its columns were standardised over all rows, so a privacy claim on it does not hold",),
    ),
)
_BY_NAME = MappingProxyType({dataset.name: dataset for dataset in sorted(_ALL, key=lambda dataset: dataset.name)})


def names(*, paper: str | None = None) -> list[str]:
    """The sets that `load` knows, in alphabetical order.

    Parameters
    ----------
    paper : str or None
        Only the sets of this paper, one of the keys of `PAPERS`.

    Examples
    --------
    >>> from tacit.datasets import names
    >>> names(paper="dp-cd")
    ['california_housing', 'elec2']
    """
    if paper is not None and paper not in PAPERS:
        raise ValueError(f"paper must be one of {', '.join(map(repr, PAPERS))}, got {paper!r}")
    return [name for name, dataset in _BY_NAME.items() if paper is None or paper in dataset.papers]


def describe(name: str) -> Dataset:
    """What the catalogue says of a set.

    Examples
    --------
    >>> from tacit.datasets import describe
    >>> describe("elec2").shape
    (45312, 8)
    """
    if not isinstance(name, str) or name not in _BY_NAME:
        raise ValueError(f"name must be one of {', '.join(map(repr, _BY_NAME))}, got {name!r}")
    return _BY_NAME[name]
