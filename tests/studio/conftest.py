"""Models, servers over them for a whole run, and a browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from screen import CHROMIUM, FLAGS, Screen
from talking import running

import gbpn
from gbpn.studio.limits import Limits
from gbpn.studio.run import Server
from gbpn.studio.site import write_site


@pytest.fixture(scope="session")
def thin() -> gbpn.DepthCompleter:
    """Two stages, thin and untrained: conversations do not need good depth."""
    torch.manual_seed(0)
    return gbpn.DepthCompleter(gbpn.build("small-2", width=0.5))


@pytest.fixture(scope="session")
def learned() -> gbpn.DepthCompleter:
    """Thin and untrained too, with learned edges, a depth-like map and corrections in every iteration."""
    torch.manual_seed(0)
    return gbpn.DepthCompleter(gbpn.build("small-prior", width=0.5))


@pytest.fixture(scope="session")
def server(thin: gbpn.DepthCompleter) -> Iterator[Server]:
    with running(thin, limits=Limits(workers=2)) as one:
        yield one


@pytest.fixture(scope="session")
def completer() -> gbpn.DepthCompleter:
    """The weights that people get."""
    return gbpn.DepthCompleter.from_pretrained(device="cpu")


@pytest.fixture(scope="session")
def studio(completer: gbpn.DepthCompleter) -> Iterator[Server]:
    with running(completer, limits=Limits(workers=2)) as one:
        yield one


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the weights that people get; written once, or the folder that GBPN_SITE names."""
    if there := os.environ.get("GBPN_SITE"):
        return Path(there)
    pytest.importorskip("onnxscript", reason="needs pip install gbpn[onnx]")
    folder = tmp_path_factory.mktemp("site") / "studio"
    write_site(folder)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For one file: while it is open, nothing else in this thread can run an event loop."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install gbpn[dev])")
    if CHROMIUM is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def screen(browser: Any, studio: Server) -> Iterator[Screen]:
    """A page on the studio; Python computes on one thread, as the server does: the same sums and bytes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    # wait_for_function evaluates text, which the page's own policy forbids; that policy has a test of its own
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    screen = Screen(context.new_page())
    screen.page.goto(studio.address.url)
    screen.page.wait_for_selector(".card")
    yield screen
    context.close()
    torch.set_num_threads(threads)
    assert not screen.problems, screen.problems
