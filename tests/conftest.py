"""What every test shares: one thread, one seed, how bad input is refused, how outputs are compared.

`pytest --nbval` compares pictures only if this file is among those that it loads, as it is when
pytest is called without a path; otherwise name it: `pytest --nbval tests/conftest.py course/03*`.
"""

import collections
import os
import re

import nbval.plugin
import pytest
import torch
from nbval.plugin import IPyNbCell
from stored_outputs import differences

# The tensors here are tiny: with several threads each operation would mostly wait, spinning, for
# the others to report that they had nothing to do.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_numbers_every_time():
    torch.manual_seed(0)


@pytest.fixture
def refuses():
    """``refuses(ValueError, "the whole sentence", function, arguments...)``."""

    def check(error, sentence, function, *arguments, **options):
        with pytest.raises(error) as caught:
            function(*arguments, **options)
        assert str(caught.value) == sentence
        assert type(caught.value) is error

    return check


@pytest.fixture
def figure(request):
    """``figure("12 of 12")``: a line that the end of the test run prints."""
    return lambda line: request.node.user_properties.append(("figure", line))


def pytest_terminal_summary(terminalreporter):
    """Print what the tests have counted; a test's report carries it here from any worker."""
    reports = (report for reports in terminalreporter.stats.values() for report in reports)
    figures = [
        line
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, line in report.user_properties
        if name == "figure"
    ]
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.write_line(line)


# --- nbval --------------------------------------------------------------------------------------


def compare_outputs(cell, computed, stored):
    """Compare in our way instead of nbval's; see stored_outputs.py."""
    cell.comparison_traceback, tolerated = differences(stored, computed)
    where = f"{cell.path.stem}, {cell.name}"
    cell.user_properties += [("figure", f"{where}, {line}") for line in tolerated]
    return not cell.comparison_traceback


# A hook would not do: the notebooks are in another folder than this file.
IPyNbCell.compare_outputs = compare_outputs
# It would join all that a cell prints, across the outputs in between.
nbval.plugin.coalesce_streams = lambda outputs: outputs


# --- Several processes --------------------------------------------------------------------------


# What their module fixtures make takes long: a built notebook, a wheel in an environment.
ONE_PROCESS = ("tests/course/test_saving.py", "tests/project/test_distribution.py")


def group(nodeid):
    """What runs in one process, one after the other: a notebook; all that needs the browser."""
    file, _, name = nodeid.rpartition("::")
    if file.startswith("tests/browser/"):
        return "browser"
    is_cell = re.fullmatch(r"Cell \d+", name)  # a file outside this folder has no path here
    return file if is_cell or file in ONE_PROCESS else nodeid


def pytest_collection_modifyitems(items):
    """Begin with the largest groups, so that all processes end at about the same time."""
    sizes = collections.Counter(group(item.nodeid) for item in items)
    large = [name for name, size in sizes.items() if size > 1]
    order = {"browser": -1} | {name: 0 for name in large if name != "browser"}
    items.sort(key=lambda item: order.get(group(item.nodeid), 1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute the groups with `pytest -n 2`; xdist's own loadgroup fails under pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group
    return scheduler


# In the processes of pytest -n 2 it is an error to open a text file without an encoding (see
# pyproject.toml): they inherit this variable. The kernels and programs of tests must not.
os.environ["PYTHONWARNDEFAULTENCODING"] = "1"


@pytest.hookimpl(tryfirst=True)  # before xdist's own loop
def pytest_runtestloop():
    """Take the variable back, once the processes have started."""
    os.environ.pop("PYTHONWARNDEFAULTENCODING", None)
