"""From data to a model that others can use, in a few seconds."""

import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import LDMClassifier, MarginDistributionDisplay, ODMClassifier, SVMClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

print("machine        accuracy  smallest   mean  variance of the margins (divided by the norm)  duality gap")
for cls in (SVMClassifier, LDMClassifier, ODMClassifier):
    clf = cls(kernel="rbf").fit(X_train, y_train)
    margins = clf.margins_ / clf.norm_
    numbers = f"{margins.min():8.3f}  {margins.mean():5.3f}  {margins.var():8.5f}"
    print(f"{cls.__name__:14}    {clf.score(X_test, y_test):.3f}  {numbers}{clf.duality_gap_:55.1e}")

best = widemargin.tune(ODMClassifier(kernel="rbf", probability=True), X_train, y_train)
found = best.search_
print(f"tuned: {found.params} of {found.points} points in {found.seconds:.1f} s, {found.fits_saved} fits saved")
print(f"       {best.score(X_test, y_test):.3f} on the test set; the first sample: {best.predict_proba(X_test[:1])[0]}")

search = GridSearchCV(make_pipeline(StandardScaler(), ODMClassifier()), {"odmclassifier__C1": [1, 10, 100]}, cv=3)
search.fit(X_train, y_train)
print(f"best of a grid: {search.best_params_}, {search.score(X_test, y_test):.3f} on the test set")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "odm.model"
    clf.save(path)
    print(f"the model has {path.stat().st_size} bytes; the command line reads it too")
    assert (widemargin.load(path).predict(X_test) == clf.predict(X_test)).all()

try:
    display = MarginDistributionDisplay.from_estimator(clf, X_test, y_test)
    print(f"a picture of {len(display.margins)} margins: display.figure_.savefig(...)")
except ImportError:
    print("with matplotlib installed, MarginDistributionDisplay draws the margins")
