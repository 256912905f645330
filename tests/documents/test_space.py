"""The ready Space: its page answers to strangers, may be framed by the hub only, and its card is one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import yaml

import gbpn

SPACE = Path(__file__).resolve().parents[2] / "examples" / "space"


def test_the_page_answers_under_any_name_and_in_the_hubs_frame() -> None:
    testing = pytest.importorskip("starlette.testclient", reason="needs httpx")
    specification = importlib.util.spec_from_file_location("space_app", SPACE / "app.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    app = module.application(gbpn.DepthCompleter(gbpn.build("small", width=0.5)))
    with testing.TestClient(app, base_url="http://owner-gbpn.hf.space") as client:
        answer = client.get("/")
    assert answer.status_code == 200
    assert "<html" in answer.text
    assert "frame-ancestors https://huggingface.co;" in answer.headers["content-security-policy"]


def test_the_card_names_the_port_that_is_listened_on() -> None:
    text = (SPACE / "README.md").read_text(encoding="utf-8")
    head = yaml.safe_load(text.split("---")[1])
    assert head["sdk"] == "docker"
    assert str(head["app_port"]) in (SPACE / "app.py").read_text(encoding="utf-8")
    assert len(head["short_description"]) <= 60
