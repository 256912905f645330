"""One shape, captured once: what can be known of it without a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fields import directed_field
from gbpn import Gaussian, infer
from gbpn.errors import BackendError, InputError
from gbpn.gbp.captured import CapturedInference, moved, tensors_of

OPTIONS = {"iterations": 2, "nonlocal_steps": 2, "backend": "reference"}


def scaled(mrf, factor: float):
    return replace(mrf, depth=mrf.depth * factor)


class Rerun(CapturedInference):
    """In place of a GPU: a replay computes into the memory of the capture, from what its inputs hold."""

    replays = 0

    def __init__(self, example) -> None:
        super().__init__(example, eager=True, **OPTIONS)
        self._example = moved(example, "cpu", copy=True)
        self._belief = infer(self._example, **self._options).belief
        self._graph = self

    def replay(self) -> None:
        found = infer(self._example, **self._options).belief
        self._belief.information.copy_(found.information)
        self._belief.precision.copy_(found.precision)
        self.replays += 1


def assert_equal(got: Gaussian, wanted: Gaussian) -> None:
    assert torch.equal(got.information, wanted.information)
    assert torch.equal(got.precision, wanted.precision)


def test_no_gpu_is_said_and_eager_is_a_choice() -> None:
    mrf = directed_field(5, 7, iterations=2)
    with pytest.raises(BackendError, match=r"got cpu: move it .* eager=True"):
        CapturedInference(mrf, **OPTIONS)
    once = CapturedInference(mrf, eager=True, **OPTIONS)
    for factor in (1.0, 2.0):
        assert_equal(once(scaled(mrf, factor)), infer(scaled(mrf, factor), **OPTIONS).belief)


def test_a_replay_reads_what_is_given_and_keeps_what_it_gave() -> None:
    mrf = directed_field(5, 7, iterations=2)
    before = {name: tensor.clone() for name, tensor in tensors_of(mrf).items()}
    once = Rerun(mrf)
    first = once(scaled(mrf, 2.0))
    kept = first.information.clone()
    second = once(scaled(mrf, 3.0))
    assert once.replays == 2
    assert_equal(first, infer(scaled(mrf, 2.0), **OPTIONS).belief)
    assert_equal(second, infer(scaled(mrf, 3.0), **OPTIONS).belief)
    assert torch.equal(first.information, kept)
    for name, tensor in tensors_of(mrf).items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("eager", [True, False])
def test_what_was_not_captured_is_refused(eager: bool) -> None:
    mrf = directed_field(5, 7, iterations=2)
    once = CapturedInference(mrf, eager=True, **OPTIONS) if eager else Rerun(mrf)
    with pytest.raises(InputError, match=r"got float64 \[1, 1, 5, 8\] on cpu: capture another"):
        once(replace(mrf, depth=torch.zeros(1, 1, 5, 8, dtype=torch.float64)))
    with pytest.raises(InputError, match="got nothing"):
        once(replace(mrf, nonlocal_=None))
    with pytest.raises(InputError, match="has no gradient"):
        once(replace(mrf, depth=mrf.depth.requires_grad_()))
    with pytest.raises(InputError, match="leave out record"):
        CapturedInference(mrf, eager=True, record=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_on_a_gpu_gives_what_infer_gives() -> None:
    mrf = moved(directed_field(33, 65, iterations=2), "cuda")
    options = {"iterations": 2, "nonlocal_steps": 2}
    once = CapturedInference(mrf, **options)
    for factor in (2.0, 3.0):
        wanted = infer(scaled(mrf, factor), **options).belief
        torch.testing.assert_close(once(scaled(mrf, factor)).mean, wanted.mean)
