"""What every test shares: one thread, one seed, and one way to say that bad input is refused."""

import pytest
import torch

# The tensors here are tiny: with several threads each operation would mostly wait, spinning, for
# the others to report that they had nothing to do.
torch.set_num_threads(1)

FIGURES = pytest.StashKey[list[str]]()


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
    return request.config.stash.setdefault(FIGURES, []).append


def pytest_terminal_summary(terminalreporter, config):
    """Print what the tests have counted."""
    if lines := config.stash.get(FIGURES, []):
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)
