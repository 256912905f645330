from __future__ import annotations

import pytest
from engine_frames import model_of

import gbpn


@pytest.fixture(scope="session")
def model() -> gbpn.GBPN:
    return model_of()


@pytest.fixture(scope="session")
def completer(model: gbpn.GBPN) -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter(model)
