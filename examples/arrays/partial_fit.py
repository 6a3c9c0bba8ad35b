"""Fits a model of scikit-learn that never sees more than one batch at a time.

python data.py
python partial_fit.py
"""

from __future__ import annotations

import lowtide as lt
import numpy as np
from sklearn.linear_model import SGDClassifier

x, y = lt.open("features.npy", memory="16MiB"), lt.open("labels.npy")
classes = np.unique(y[:])
mean, std = x.mean(axis=0), x.std(axis=0)  # of the whole file, in flat memory
every_tenth = np.arange(len(x)) % 10 == 0
train = lt.Loader((x, y), batch_size=1024, seed=0, rows=~every_tenth)
test = lt.Loader((x, y), batch_size=1024, order="sequential", rows=every_tenth, drop_last=False)

classifier = SGDClassifier(loss="log_loss", random_state=0)
for epoch in range(3):
    for xb, yb in train:
        classifier.partial_fit((xb - mean) / std, yb, classes)
    right = sum((classifier.predict((xb - mean) / std) == yb).sum() for xb, yb in test)
    print(f"epoch {epoch}: accuracy {right / every_tenth.sum():.4f}")
