"""What several tests of the ground floor share."""

import pytest
import torch
from torch.testing import assert_close

from attnlab import TinyTransformer


@pytest.fixture
def close():
    """``close(actual, expected, atol=1e-4)``; expected may be a list of numbers."""

    def check(actual, expected, atol=1e-4):
        assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=atol, rtol=0)

    return check


@pytest.fixture
def small_llama():
    """``small_llama(n_kv_heads=None, dtype=torch.float32)``: 11 ids, 6 heads, 12 positions."""

    def make(n_kv_heads=None, dtype=torch.float32):
        torch.manual_seed(5)
        return TinyTransformer(11, 24, 6, 2, 12, n_kv_heads).to(dtype).requires_grad_(False)

    return make


@pytest.fixture
def ids():
    """Ids (3, 7) for ``small_llama``."""
    return torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(2))
