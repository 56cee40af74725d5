"""What these tests need beside Python."""

import shutil

import pytest


def pytest_itemcollected(item):
    """Skip what runs make where there is none, as on Windows."""
    if item.path.name == "test_project_files.py" and not shutil.which("make"):
        item.add_marker(pytest.mark.skip(reason="no make here"))
