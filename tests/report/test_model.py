import html
import json
import math
import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.linear_model import LinearRegression as PlainLinearRegression

from tacit import PCA, LinearRegression, LogisticRegression
from tacit.privacy import Budget, Guarantee, Plan, Release
from tacit.report.components import MOST_BARS
from tacit.report.guarantee import at_most, check, in_words, percent
from tacit.report.model import MOST_ROWS, Remark, model_report, write
from tacit.report.page import Part, interval, stacked_bar
from tests.units import ROWS

SECTIONS = ("guarantee", "budget", "coefficients", "not-covered", "check")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium or chrome on PATH: the report is not tried in one"
)
pytestmark = pytest.mark.filterwarnings("ignore:.*budget is too small:UserWarning")


def data(n=500, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.3 * rng.normal(size=n)


@pytest.fixture(scope="module")
def classifier():
    X, margin = data()
    return LogisticRegression(3.0, classes=["no", "yes"]).fit(X, np.where(margin > 0, "yes", "no"))


@pytest.fixture(scope="module")
def several():
    X, margin = data()
    return LogisticRegression(3.0).fit(X, np.digitize(margin, [-0.5, 0.5]))


@pytest.fixture(scope="module")
def regression():
    X, y = data()
    return LinearRegression(3.0, y_bounds=(-4, 4)).fit(X, y)


@pytest.fixture(scope="module")
def sparse():
    X, margin = data()
    return LogisticRegression(3.0, solver="text").fit(csr_array(X), margin > 0)


class Page(HTMLParser):
    """Checks that tags are closed; collects them with their attributes, and the text by section."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.ids = [], [], {}, []
        self.section = None
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        if tag == "section":
            self.section = attributes["id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "section":
            self.section = None

    def handle_data(self, text):
        self.text[self.section] = self.text.get(self.section, "") + text


@pytest.fixture(params=["classifier", "several", "regression", "sparse"])
def model(request):
    return request.getfixturevalue(request.param)


def test_every_model_has_all_sections_and_the_page_stands_by_itself(model):
    text = model_report(model)
    page = Page(text)
    assert [attributes["id"] for tag, attributes in page.tags if tag == "section"] == list(SECTIONS)
    assert len(page.ids) == len(set(page.ids))
    names = {name for _, attributes in page.tags for name in attributes}
    assert not names & {"src", "href", "srcset", "action", "onclick", "onload", "background"}
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "img", "object", "form"}
    assert not re.search(r"url\(|@import|http:|https:|file:", text)
    assert ("html", {"lang": "en"}) in page.tags
    for tag, attributes in page.tags:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes["aria-label"]
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_guarantee_is_said_in_words(classifier):
    said = " ".join(Page(model_report(classifier, target="income")).text["guarantee"].split())
    guarantee = classifier.guarantee_
    assert "had any one row been left out" in said
    assert f"a factor of at most eepsilon = {math.exp(3):.4g}, plus delta = 9e-05." in said
    assert "whether one given row was among them" in said
    e = math.exp(3.0)
    assert f"right at most {percent((e + guarantee.delta) / (e + 1))} of the time; tossing" in said
    assert "random_state" not in said
    assert "500" in said
    assert "<h1>Private LogisticRegression of income</h1>" in model_report(classifier, target="income")


def test_gaussian_noise_gives_the_exact_limit():
    X, margin = data()
    model = LogisticRegression(1.0, solver="gradient").fit(X, margin > 0)
    said = Page(model_report(model)).text["guarantee"]
    mu = model.guarantee_.mu
    assert f"mu-GDP with mu = {mu:.3g}, and the guess is right at most {percent(norm.cdf(mu / 2))} of the" in said


def test_a_part_of_delta_beside_the_noise_leaves_no_exact_limit():
    X, margin = data()
    whole = LogisticRegression(1.0, solver="gradient").fit(X, margin > 0).guarantee_
    beside = replace(whole, d0=whole.delta / 10)
    for guarantee, said in ((whole, True), (beside, False)):
        assert ("mu-GDP" in in_words(guarantee)) is said
        assert "tossing a coin is right 50%." in in_words(guarantee)
        assert ("can recompute its epsilon:" in check(guarantee)) is said
    assert f"can recompute its epsilon, at delta - d0 = {beside.delta_of_event!r}:" in check(beside)


def test_what_weakens_a_guarantee_is_said():
    X, margin = data()
    y = margin > 0
    said = Page(model_report(LogisticRegression(12.0, None, "replace-one", random_state=3).fit(X, y))).text
    assert "had any one row held anything else" in said["guarantee"]
    assert "which of two given rows was among them" in said["guarantee"]
    assert "Whoever knows that number can take the noise off" in said["guarantee"]
    assert "epsilon = 12 is large" in said["guarantee"]
    assert "The random_state is fixed" in said["not-covered"]
    with pytest.warns(UserWarning, match="not below 1/n"):
        loose = LogisticRegression(1.0, 0.01).fit(X, y)
    assert "allow publishing one row outright" in Page(model_report(loose)).text["guarantee"]
    said = Page(model_report(LogisticRegression(math.inf).fit(X, y))).text
    assert "Nothing: epsilon is infinite" in said["guarantee"]
    assert "tossing" not in said["guarantee"]
    assert "no noise" in said["coefficients"]
    assert "could be noise[" not in said["coefficients"]


def test_the_budget_is_split_as_planned(model):
    page = Page(model_report(model))
    releases = model.plan_.plan.releases
    total = sum(release.share for release in releases)
    widths = [float(a["width"]) for tag, a in page.tags if tag == "rect" and float(a["width"]) > 1]
    assert widths == pytest.approx([1000 * release.share / total for release in releases], abs=0.02)
    told = page.text["budget"]
    for release in releases:
        assert f"{release.name}{release.share / total:.1%}{release.count}" in told
        assert f"{model.plan_.multiplier(release.name):.4g}" in told


def test_a_release_without_a_share_is_listed(regression):
    plan = Plan(
        Release("one", "laplace", multiplier=30.0), Release("two", "gaussian", share=1.0, count=1_000, sampling=0.01)
    )
    regression = _copy(regression)
    regression.plan_ = plan.calibrate(Budget(3.0, 1e-4), ROWS, "test")
    told = Page(model_report(regression)).text["budget"]
    assert "onefixed1laplaceall30" in told
    assert "two100.0%1,000gaussian0.01 of them, by chance" in told


def _copy(model):
    other = type(model)()
    other.__dict__.update(vars(model))
    return other


def test_coefficients_come_with_their_noise(regression):
    regression = _copy(regression)
    regression.coef_, regression.coef_noise_ = np.array([2.0, -0.1, 0.5]), np.array([0.1, 0.2, 0.25])
    page = Page(model_report(regression, names=["first", "second", "third"], note="Read <this>."))
    told = page.text["coefficients"]
    assert "Read <this>." in told
    assert "first2± 0.1[" in told  # clear of zero
    assert "second\u22120.1± 0.2could be noise[" in told
    assert "third0.5± 0.25could be noise[" in told  # two noise levels, to the point
    assert "2 of 3 coefficients are within two noise levels of zero." in told
    assert "clipped to [\u22124, 4]" in told
    kinds = [a["class"] for tag, a in page.tags if tag == "svg" and "interval" in a.get("class", "")]
    assert kinds == ["interval clear", "interval faint", "interval faint"]


def test_each_class_has_its_table(several):
    told = Page(model_report(several)).text["coefficients"]
    for label in several.classes_:
        assert f"Towards class {label}" in told
    assert told.count("intercept") == 3


def test_sparse_models_have_no_range(sparse):
    told = Page(model_report(sparse)).text["coefficients"]
    assert "clipped to" not in told
    assert "Towards class True, away from False" in told


def test_of_very_many_columns_those_that_stand_out_are_shown(sparse):
    d = MOST_ROWS + 40
    wide = _copy(sparse)
    wide.coef_, wide.coef_noise_ = np.zeros((1, d)), np.ones((1, d))
    wide.coef_[0, 40:] = 9.0
    wide.clip_low_, wide.clip_high_ = np.full(d, -np.inf), np.full(d, np.inf)
    wide.n_features_in_ = d
    told = Page(model_report(wide, names=[f"<{j}>" for j in range(d)])).text["coefficients"]
    assert f"The {MOST_ROWS} that stand out most are shown" in told
    assert "<40>9" in told
    assert "<39>0" not in told


def test_what_is_not_covered_is_graded(classifier, several):
    remarks = [Remark("told", "The moon & the stars."), Remark("voids", "First.")]
    page = model_report(classifier, remarks=remarks)
    told = Page(page).text["not-covered"]
    headings = ["Would void", "Told outside", "Taken as public", "Outside what"]
    assert [told.index(heading) for heading in headings] == sorted(told.index(heading) for heading in headings)
    assert told.index("First.") < told.index("Told outside") < told.index("The moon & the stars.")
    assert "list of classes" not in told
    assert "list of classes was learned" in Page(model_report(several)).text["not-covered"]
    with pytest.raises(ValueError, match="grade must be one of voids, told, public, outside, got 'bad'"):
        Remark("bad", "")


def test_the_stored_guarantee_can_be_checked(model):
    [stored] = re.findall(r'<pre id="guarantee-json">(.*?)</pre>', model_report(model))
    guarantee = Guarantee.from_json(html.unescape(stored))
    assert guarantee == model.guarantee_
    assert guarantee.recompute() <= guarantee.epsilon


def test_the_recipe_runs_as_it_stands_and_imports_no_more_than_it_uses(classifier, tmp_path, monkeypatch, capsys):
    page = model_report(classifier)
    [recipe] = re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)
    [stored] = re.findall(r'<pre id="guarantee-json">(.*?)</pre>', page)
    recipe = html.unescape(recipe)
    (tmp_path / "guarantee.json").write_text(html.unescape(stored))
    monkeypatch.chdir(tmp_path)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the file is closed when the lines end
        exec(recipe, names)
    stated, found = capsys.readouterr().out.splitlines()
    assert stated == str(classifier.guarantee_)
    assert float(found) <= classifier.guarantee_.epsilon
    imported = [name for line in re.findall(r"import (.*)", recipe) for name in line.split(", ")]
    assert all(len(re.findall(rf"\b{name}\b", recipe)) > 1 for name in imported)


def test_everything_is_escaped():
    X, margin = data()
    y = np.where(margin > 0, "<b>&yes", "<i>no")
    text = model_report(
        LogisticRegression(3.0).fit(X, y),
        names=["<script>alert(1)</script>", "a & b", '"quoted"'],
        target="<u>",
        remarks=[Remark("told", "<em>")],
    )
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"b", "i", "u", "em", "script"}
    assert "<script>alert(1)</script>" in page.text["coefficients"]
    assert "Towards class <i>no, away from <b>&yes" in page.text["coefficients"]


def test_bad_input_is_refused(classifier):
    with pytest.raises(ValueError, match="names must hold 3 names, one for each feature, got 2"):
        model_report(classifier, names=["a", "b"])
    with pytest.raises(ValueError, match="not fitted"):
        model_report(LogisticRegression())
    with pytest.raises(AttributeError):
        model_report(PlainLinearRegression().fit(*data()))


def test_numbers_are_rounded_up_where_they_are_limits():
    assert [at_most(value) for value in (5.44e-07, 5.5e-07, 0.001, 1e-300)] == [
        "5.5e-07",
        "5.5e-07",
        "0.001",
        "1e-300",
    ]


def test_a_limit_is_never_rounded_down():
    assert [percent(share) for share in (0.5, 0.50001, 0.7311, 0.9999999, 1.0)] == [
        "50.0%",
        "50.1%",
        "73.2%",
        "100.0%",
        "100.0%",
    ]


def test_pictures_stay_in_their_frame():
    for value, reach in ((0.0, 0.0), (5.0, 0.0), (-5.0, 9.0), (1e300, 1e300)):
        numbers = [float(x) for x in re.findall(r'[MHx]="?(-?[\d.]+)', interval(value, reach, 2.0))]
        assert all(0 <= x <= 200 for x in numbers)
    assert 'cx="100.0"' in interval(0.0, 0.0, 0.0)
    narrow = stacked_bar([Part("a", 0.999, "#fff"), Part("a name that does not fit", 0.001, "#000")], "label")
    assert narrow.count("<text") == 1


# --- in a real browser -----------------------------------------------------------------------------------------------


def browse(tmp_path, *options):
    """What the browser prints, and what it says on its console."""
    done = subprocess.run(
        [
            BROWSER,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


@in_a_browser
def test_a_browser_shows_the_report_offline(tmp_path, classifier):
    path = tmp_path / "report.html"
    write(path, classifier, names=["age", "<hours>", "wage"], target="income")
    dom, console = browse(tmp_path, "--dump-dom", path.as_uri())
    assert console == []
    page = Page(re.sub(r"^.*?(?=<html)", "", dom, flags=re.DOTALL).rstrip())
    assert set(SECTIONS) <= set(page.ids)
    assert "<hours>" in page.text["coefficients"]
    stored = re.search(r'<pre id="guarantee-json">(.*?)</pre>', dom, re.DOTALL).group(1)
    assert Guarantee.from_json(html.unescape(stored)) == classifier.guarantee_
    shot = tmp_path / "shot.png"
    browse(tmp_path, "--window-size=900,1200", "--hide-scrollbars", f"--screenshot={shot}", path.as_uri())
    seen = pytest.importorskip("matplotlib.image").imread(shot)
    assert seen.shape[:2] == (1200, 900)
    colours = {tuple(colour) for colour in np.rint(255 * seen[..., :3]).astype(int).reshape(-1, 3).tolist()}
    assert (0x00, 0x72, 0xB2) in colours  # the first part of the budget's bar


@in_a_browser
def test_the_browser_would_tell_of_a_page_that_loads_something(tmp_path):
    path = tmp_path / "bad.html"
    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\">"
    path.write_text(f"<!doctype html><html><head>{policy}</head><body><img src='other.png'></body></html>")
    _, console = browse(tmp_path, "--dump-dom", path.as_uri())
    assert console


def test_json_in_the_page_is_strict(classifier):
    [stored] = re.findall(r'<pre id="guarantee-json">(.*?)</pre>', model_report(classifier))
    json.loads(html.unescape(stored), parse_constant=pytest.fail)


# --- components ------------------------------------------------------------------------------------------------------


def test_a_pca_has_a_scree_plot_and_counts_what_stands_above_the_noise():
    X, _ = data(2_000, 4)
    model = PCA(4, 1.0, row_norm=20.0).fit(X * [9.0, 5.0, 1e-3, 1e-3])
    text = model_report(model)
    clear = int(np.sum(model.reliability_ > 0))
    assert clear == 2
    assert f"{clear} of 4 components stand above the noise" in text
    assert text.count('class="clear"') == clear
    assert 'class="floor"' in text
    assert text.count("could be noise") == 4 - clear
    assert 'id="components"' in text
    assert 'id="coefficients"' not in text


def test_a_scree_plot_without_noise_and_one_of_noise_alone():
    X, _ = data(300, 70)
    exact = model_report(PCA(70, math.inf).fit(X))
    assert 'class="floor"' not in exact
    assert f"The first {MOST_BARS} of 70 are shown" in exact
    assert "70 of 70 components stand above the noise" in exact
    lost = model_report(PCA(3, 1e-3, row_norm=50.0, random_state=0).fit(X))
    assert "0 of 3 components stand above the noise" in lost
    assert lost.count("not known</td>") == 3
    assert 'class="clear"' not in lost
