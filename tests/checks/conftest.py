"""What the tests of the checks share."""

import pytest

from attnlab.checks import sandbox


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """On a busy machine an answer that ends may take longer than a learner would wait."""
    monkeypatch.setattr(sandbox, "LIMIT", 60.0)
