"""Everyone can use the page that is served: names, contrasts and order, in light and dark."""

from __future__ import annotations

from access import require_axe, stumbles_everywhere
from screen import Screen


def test_nobody_stumbles(screen: Screen) -> None:
    require_axe()
    assert not stumbles_everywhere(screen)


def test_nobody_stumbles_on_a_phone(screen: Screen) -> None:
    require_axe()
    screen.page.set_viewport_size({"width": 390, "height": 844})
    assert not stumbles_everywhere(screen)
