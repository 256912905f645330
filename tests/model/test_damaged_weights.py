"""Weight files that are not what they were when they were written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import gbpn
from gbpn.errors import CheckpointError
from gbpn.model.loading import load
from gbpn.weights.files import CHECKSUM, save


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return save(gbpn.build("small", width=0.25), tmp_path_factory.mktemp("weights") / "sound.safetensors")


def rewritten(source: Path, path: Path, *, tensors: dict | None = None, **metadata: str | None) -> Path:
    """The same file with other tensors or metadata, without a checksum."""
    with safe_open(source, framework="pt") as file:
        kept = {**file.metadata(), **metadata, CHECKSUM: None}
    state = {**load_file(source), **(tensors or {})}
    save_file(state, path, {key: value for key, value in kept.items() if value is not None})
    return path


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_flipped_bit_is_noticed(sound: Path, tmp_path: Path, share: float) -> None:
    content = bytearray(sound.read_bytes())
    content[int(share * len(content))] ^= 1
    path = tmp_path / "flipped.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum does not fit"):
        load(path)


def test_files_without_a_checksum_are_read(sound: Path, tmp_path: Path) -> None:
    old = rewritten(sound, tmp_path / "old.safetensors")
    with safe_open(old, framework="pt") as file:
        assert CHECKSUM not in file.metadata()
    name = "first.heads.trunk.0.conv.weight"
    assert torch.equal(load(old).state_dict()[name], load(sound).state_dict()[name])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(sound: Path, tmp_path: Path, value: float) -> None:
    name = "first.heads.trunk.0.conv.weight"
    spoilt = load_file(sound)[name].clone()
    spoilt.view(-1)[3] = value
    path = rewritten(sound, tmp_path / "nan.safetensors", tensors={name: spoilt})
    with pytest.raises(CheckpointError, match=name):
        load(path)


METADATA = {
    "config": ["[]", "3", '"x"', "{", '{"name": 3, "widths": {}}', '{"iterations": "x"}'],
    "card": ["[]", "3", "{"],
    "calibration": [
        "[1]",
        "3",
        "{",
        '{"knots": 3}',
        '{"knots": [1, 2], "log_std": [1], "relative": true}',
        '{"knots": [1, 2], "log_std": ["a", "b"], "relative": true}',
        '{"knots": [2, 1], "log_std": [1, 2], "relative": true}',
        '{"knots": [1, 2], "log_std": [1, 2], "relative": "no"}',
        json.dumps({"knots": [1, float("nan")], "log_std": [1, 2], "relative": True}),
    ],
}


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in METADATA.items() for text in texts])
def test_metadata_of_the_wrong_shape_is_a_checkpoint_error(
    sound: Path, tmp_path: Path, key: str, text: str
) -> None:
    path = rewritten(sound, tmp_path / "odd.safetensors", **{key: text})
    with pytest.raises(CheckpointError):
        load(path)


def test_no_advice_to_unpickle(tmp_path: Path) -> None:
    path = tmp_path / "odd.pth"
    torch.save({"net": Path("x")}, path)
    with pytest.raises(CheckpointError) as caught:
        load(path)
    assert "weights_only" not in str(caught.value)
    assert "trust" not in str(caught.value)
