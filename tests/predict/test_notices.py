"""Notices of many frames: one line for those that differ only in numbers."""

from __future__ import annotations

from gbpn.jobs.notices import merged


def test_numbers_become_ranges() -> None:
    told = [f"{count} points: these weights were trained for 50 to 5000" for count in (7, 12, 9)]
    assert merged(told) == [("7–12 points: these weights were trained for 50 to 5000", 3)]


def test_other_words_stay_apart_and_in_order() -> None:
    told = ["depth from 0.1 to 80.5 m", "camera not given", "depth from 0.3 to 75 m", "camera not given"]
    assert merged(told) == [("depth from 0.1–0.3 to 75–80.5 m", 2), ("camera not given", 2)]
    assert merged([]) == []


def test_what_only_looks_like_a_number_stays() -> None:
    assert merged(["cam0 is 640x480", "cam1 is 640x480"]) == [("cam0 is 640x480", 1), ("cam1 is 640x480", 1)]
