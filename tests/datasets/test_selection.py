"""Validation frames are training frames, and no frame is on both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbpn.datasets.selection import part
from gbpn.errors import InputError


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=60), st.floats(0.01, 0.6))
def test_a_partition_that_keeps_groups_together(letters: list[str], holdout: float) -> None:
    items = [f"{letter}{i}" for i, letter in enumerate(letters)]
    train, validation = (part(items, split, holdout, lambda x: x[0]) for split in ("train", "validation"))
    assert sorted(train + validation) == sorted(items)
    assert validation
    assert train
    if len(set(letters)) > 1:
        assert not {x[0] for x in train} & {x[0] for x in validation}


@given(st.integers(2, 60), st.floats(0.01, 0.6))
def test_about_the_share_is_held_out(count: int, holdout: float) -> None:
    """Of one group the last items, rounded, of many groups every (1 / holdout)-th; the order stays."""
    alone = part(list(range(count)), "validation", holdout, lambda _: "a")
    assert alone == list(range(count - len(alone), count))
    assert len(alone) == max(round(count * holdout), 1)
    apart = part(list(range(count)), "validation", holdout, lambda item: f"{item:03}")
    period = max(min(round(1 / holdout), count), 2)
    assert apart == [item for item in range(count) if item % period == period - 1]


def test_without_holdout_there_is_no_validation() -> None:
    assert part(["a1", "b2"], "train", 0.0, lambda x: x[0]) == ["a1", "b2"]
    with pytest.raises(InputError, match="holdout"):
        part(["a1"], "validation", 0.0, lambda x: x[0])
    with pytest.raises(InputError, match="holdout"):
        part(["a1"], "train", 1.5, lambda x: x[0])
