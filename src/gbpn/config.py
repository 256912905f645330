"""Every size and choice of a model, and the named configurations.

A configuration is plain data: it travels inside the weight file as JSON, and any field can be overridden.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from gbpn.errors import InputError

__all__ = ["CHOICES", "CONFIGS", "PAPER_TEXT", "ModelConfig", "Start", "named"]

_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_KITTI_MEAN = (90.9950 / 255, 96.2278 / 255, 94.3213 / 255)
_KITTI_STD = (79.2382 / 255, 80.5267 / 255, 82.1483 / 255)

CHOICES: dict[str, tuple[Any, ...]] = {
    "solver": ("gbp", "affine"),
    "block": ("global-local", "convolution", "attention"),
    "heads": ("released", "light", "trunk"),
    "second_stage": ("fusion", "refine"),
    "upsampling": ("taps", "smooth"),
    "prior_decoder": ("own", "shared"),
    "edges": ("directed", "symmetric"),
    "neighbours": (4, 8),
    "depth_scale": ("metric", "median", "log"),
    "confidence": ("sum", "log"),
    "damped": ("present", "always"),
    "edge_sets": ("overlapping", "disjoint"),
    "far_messages": ("summed", "by-edge"),
    "second_start": ("carried", "empty"),
    "attended": ("decoder", "encoder"),
    "loss": ("probability", "scale-free", "l2"),
}
"""Allowed values of the fields that name one of several parts."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """What the heads say before any training, everywhere in the image; by default as released."""

    weight: float = 0.6931472
    """Precision of edges to the four axial neighbours (softplus of 0)."""
    diagonal: float = 0.6931472
    """Precision of edges to the diagonal neighbours."""
    nonlocal_: float = 0.6931472
    """Precision of the learned edges."""
    unary: float = 0.6931472
    """Precision of a measurement."""
    damping: float = 0.5
    """Share of the old message that is kept."""
    residual: float = 0.0
    """Added to the confidence logit."""
    difference: float = 1.0
    """What an output of 1 means as an expected difference, in the field's unit; the start itself is 0."""
    learned: float = 1.0
    """Factor of the learned edges' precision, for fields that respond to density; small where such edges are
    added to a trained field."""
    offset: float = 0.0
    """Pixels from a receiver to the senders of its learned edges, which lie on a circle."""
    reach: float = 1.0
    """Pixels that an output of 1 means for the place of such a sender: with more, places move faster."""
    share: float = 0.5
    """Of the depth-like map's steps in the expected differences, with about 500 points."""
    share_of_few: float = 0.0
    """Added to the logit of that share where the log density of measurements is 3 lower."""
    trust_in_many: float = 0.0
    """Log factor of a measurement's precision where the log density of measurements is 3 higher."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """One model. The defaults are GBPN-2 as its authors released it, with NYUv2's normalisation."""

    name: str = "gbpn-2"
    """What reports call it."""

    image_mean: tuple[float, float, float] = _IMAGENET_MEAN
    """Subtracted from RGB in [0, 1]."""
    image_std: tuple[float, float, float] = _IMAGENET_STD
    """Divides the result."""
    depth_scale: str = "metric"
    """The field's unit: metres ("metric"), multiples of the median measurement ("median"), or their log."""

    solver: str = "gbp"
    """"gbp", or "affine": a predicted depth fitted to the measurements by weighted least squares (V1, V2)."""
    iterations: tuple[int, ...] = (5, 8)
    """Belief propagation iterations of each stage; its length is the number of stages, 1 or 2."""
    nonlocal_steps: int = 4
    """Parallel steps along the learned edges in each iteration."""
    nonlocal_edges: int = 3
    """Learned edges per pixel; 0 leaves them out."""
    neighbours: int = 8
    """Local edges per pixel: 8 or 4."""
    edges: str = "directed"
    """"directed": both ends of an edge have parameters of their own; "symmetric": a true Markov field."""
    dynamic: bool = True
    """Whether every iteration has parameters of its own, drawn at full resolution."""
    iteration_corrections: bool = False
    """Whether every iteration corrects shared maps at a quarter of the resolution; instead of `dynamic`."""
    reweighting: float = 1.0
    """ρ of reweighted belief propagation; 1 is the paper."""
    confidence: str = "sum"
    """Confidence logit: belief precision ("sum") or its logarithm ("log"), plus the learned residual."""
    damped: str = "present"
    """Which local messages are damped: those that replace one ("present", as released), or each one, also
    against an empty slot, and fading where the sender knows nothing ("always", the paper's Eq. 8)."""
    edge_sets: str = "overlapping"
    """Which messages the vertical sweeps write: all three of their side, so that diagonals are swept twice
    ("overlapping", as released), or the middle one, so that an edge is in one set ("disjoint", the paper)."""
    far_messages: str = "summed"
    """Along learned edges: the whole belief of the sampled place, kept as a sum ("summed", as released), or a
    message for each edge, without what the sender heard from its receiver ("by-edge", the paper's Eq. 5)."""
    second_start: str = "carried"
    """The second stage goes on from the first one's messages ("carried", as released) or from none ("empty",
    the paper's Algorithm 1)."""
    attended: str = "decoder"
    """Features of the first stage that the second attends to: the decoder's (as released), or the "encoder"'s
    (the paper's table)."""
    mirror: bool = False
    """Whether the mirrored image is completed too, and both answers averaged: twice the cost, and better only
    for weights that were trained on mirrored frames as well."""

    encoder: str = "global-local"
    """"global-local" (the paper's) or "efficientnet-lite0"."""
    block: str = "global-local"
    """What a unit holds: attention and residual block, or only one of them ("convolution", "attention")."""
    widths: tuple[int, ...] = (32, 64, 128, 256, 256, 256)
    """Channels of the encoder at full resolution and at 1/2, 1/4, … ; not used by efficientnet-lite0."""
    dilations: tuple[tuple[int, ...], ...] = ((1, 16), (1, 8), (1, 4), (1, 2), (1, 1))
    """Per level, the attention dilation of each unit: this also says how many units there are."""
    window: int = 7
    """Side of the attention window; odd."""
    head_channels: int = 32
    """Channels of one attention head."""
    drop_path: float = 0.1
    """Drop-path rate of the last unit; the rates rise linearly from 0."""
    decoder_widths: tuple[int, ...] = (64, 128, 256, 256)
    """Channels of the decoder at 1/2, 1/4, 1/8 and 1/16."""
    decoder_activation: bool = False
    """Whether decoder levels end in a GELU; the released ones are linear."""
    decoder_blocks: tuple[int, ...] = ()
    """Residual blocks behind each decoder level at 1/2, 1/4, …; empty for none."""
    upsampling: str = "taps"
    """How maps grow to twice the resolution: "taps", transposed convolutions of 2×2, as released, whose four
    taps leave a lattice; "smooth": a 1×1 convolution, then bilinear."""
    heads: str = "released"
    """"released" (two residual blocks each), "light" (two convolutions each), "trunk" (one trunk for all)."""
    head_width: int = 64
    """Channels inside the heads."""
    contrast: float = 0.0
    """How strongly local edges weaken with the colour difference of their ends, times an amount that the
    network draws; 0 leaves it out."""
    detail: int = 0
    """Channels of a full-resolution branch that corrects what the heads say; 0 leaves it out."""
    prior: bool = False
    """Whether the network draws a depth-like map whose steps enter the expected differences."""
    prior_widths: tuple[int, ...] = (32, 48, 64)
    """Channels of the map's own decoder at 1/4, 1/8 and 1/16."""
    prior_decoder: str = "own"
    """"own": the map has a decoder of its own, down to a quarter of the resolution; "shared": it is read off
    the stage's decoder at half the resolution, so that what the heads see is what the map was taught."""
    prior_head: int = 24
    """Channels of the convolution between a shared decoder and the map."""
    density: int = 0
    """Hidden channels of the function by which the density of the measurements changes the field; 0 leaves it
    out."""
    agreement_trust: float = 1.0
    """Largest factor of the measurements' precision, where neighbouring ones agree, see
    `gbpn.measurements.agreement`."""
    second_stage: str = "fusion"
    """"fusion": the paper's second U-Net; "refine": a narrow network that corrects the first field."""
    refine_widths: tuple[int, ...] = (32, 48, 64, 96)
    """Channels of the "refine" second stage at 1/2, 1/4, 1/8 and 1/16."""
    refine_units: tuple[int, ...] = ()
    """Further global-local units of the "refine" second stage at 1/2, 1/4, …, which attend to the first one's
    features of that level from 1/8 on; empty for none."""

    start: Start = field(default_factory=Start)
    """What the heads say before training."""
    relative_heads: bool = False
    """Whether heads speak in multiples of their start: an edge can be cut without a large output."""
    loss: str = "probability"
    """What it is trained with: "probability" (the paper's), "scale-free" (errors relative to the frame's
    depth), or "l2" (V1)."""

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                wanted = ", ".join(repr(value) for value in allowed)
                raise InputError(f"config {name} must be one of {wanted}; got {getattr(self, name)!r}")
        if not 1 <= len(self.iterations) <= 2 or min(self.iterations) < 1:
            raise InputError(f"config iterations must be one or two counts above 0; got {self.iterations}")
        if self.window % 2 == 0 or self.window < 1:
            raise InputError(f"config window must be odd; got {self.window}")
        if not isinstance(self.contrast, int | float) or self.contrast < 0:
            raise InputError(f"config contrast must be a number, 0 or more; got {self.contrast!r}")
        if not isinstance(self.agreement_trust, int | float) or self.agreement_trust < 1:
            raise InputError(
                f"config agreement_trust must be a number, 1 or more; got {self.agreement_trust!r}"
            )
        if self.prior and (self.depth_scale != "log" or self.solver != "gbp"):
            raise InputError(
                "config prior=True needs solver='gbp' and depth_scale='log': the map's steps are differences "
                f"of log depth; got {self.solver!r} and {self.depth_scale!r}"
            )
        if len(self.prior_widths) != 3:
            raise InputError(f"config prior_widths must have three entries; got {self.prior_widths}")
        if self.iteration_corrections and self.dynamic:
            raise InputError("config iteration_corrections is instead of dynamic: set dynamic=False")
        if len(self.decoder_widths) != 4:
            raise InputError(f"config decoder_widths must have four entries; got {self.decoder_widths}")
        if len(self.decoder_blocks) not in (0, 4):
            raise InputError(
                f"config decoder_blocks must have four entries or none; got {self.decoder_blocks}"
            )
        if self.attended == "encoder" and self.second_stage == "refine":
            raise InputError(
                "config attended='encoder' is for second_stage='fusion': the narrow second stage reads the "
                "decoder's features"
            )
        if self.upsampling == "smooth" and (self.heads != "trunk" or self.edges == "directed"):
            raise InputError(
                "config upsampling='smooth' needs heads='trunk' and edges='symmetric'; "
                f"got {self.heads!r} and {self.edges!r}"
            )
        if self.encoder == "global-local":
            self._check_levels()

    def _check_levels(self) -> None:
        if len(self.widths) != 6 or len(self.dilations) != 5:
            raise InputError(
                "config widths must have six entries (1/1 … 1/32) and dilations five (1/2 … 1/32); "
                f"got {self.widths} and {self.dilations}"
            )
        for width in self.widths[1:]:
            if self.block != "convolution" and width % self.head_channels:
                raise InputError(
                    f"config widths from 1/2 down must be multiples of head_channels = {self.head_channels}; "
                    f"got {self.widths}"
                )

    @property
    def stages(self) -> int:
        return len(self.iterations)

    def scaled(self, width: float) -> ModelConfig:
        """The one dial: every width times `width`; attention heads narrow when the network gets thin."""
        head = self.head_channels
        while head > 4 and self.widths[1] * width < 2 * head:
            head //= 2

        def times(value: int, multiple: int) -> int:
            return max(multiple, round(value * width / multiple) * multiple)

        return replace(
            self,
            head_channels=head,
            widths=(times(self.widths[0], 4), *(times(w, head) for w in self.widths[1:])),
            decoder_widths=tuple(times(w, 4) for w in self.decoder_widths),
            head_width=times(self.head_width, 4),
            refine_widths=tuple(times(w, 4) for w in self.refine_widths),
            prior_widths=tuple(times(w, 4) for w in self.prior_widths),
            prior_head=times(self.prior_head, 4),
            detail=times(self.detail, 4) if self.detail else 0,
        )

    def overridden(self, overrides: Mapping[str, Any]) -> ModelConfig:
        """A copy with other values; `width` scales, a mapping for `start` changes only what it names."""
        known = {f.name for f in fields(self)}
        unknown = sorted(set(overrides) - known - {"width"})
        if unknown:
            raise InputError(f"unknown config field {unknown[0]!r}; known: width, {', '.join(sorted(known))}")
        config = self.scaled(overrides["width"]) if "width" in overrides else self
        changed = {k: _tupled(v) for k, v in overrides.items() if k != "width"}
        if isinstance(start := changed.get("start"), Mapping):
            changed["start"] = _replaced_start(config.start, start)
        return replace(config, **changed)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelConfig:
        """Inverse of `as_dict`; fields that are not named keep their default."""
        return cls().overridden(data)


def _replaced_start(start: Start, changes: Mapping[str, Any]) -> Start:
    unknown = sorted(set(changes) - {f.name for f in fields(Start)})
    if unknown:
        raise InputError(f"unknown start field {unknown[0]!r}")
    return replace(start, **changes)


def _tupled(value: Any) -> Any:
    """JSON's lists back to tuples."""
    return tuple(_tupled(v) for v in value) if isinstance(value, list | tuple) else value


_SMALL_START = Start(
    weight=8.0, diagonal=1.5, nonlocal_=1.5, unary=3000.0, damping=0.3, residual=-1.5, difference=0.02
)
"""With ρ = 0.3 and unary 300 this constant field errs 0.23 m on ten NYUv2 rooms (500 points, T = 5)."""

_SMALL = ModelConfig(
    name="small",
    depth_scale="log",
    encoder="efficientnet-lite0",
    iterations=(4,),
    nonlocal_edges=0,
    edges="symmetric",
    dynamic=False,
    reweighting=0.3,
    confidence="log",
    decoder_widths=(32, 48, 64, 96),
    decoder_activation=True,
    heads="trunk",
    head_width=32,
    contrast=1.0,
    detail=16,
    start=_SMALL_START,
    relative_heads=True,
    loss="scale-free",
)

_SMALL_PRIOR = replace(
    _SMALL,
    name="small-prior",
    iterations=(3, 4),
    nonlocal_edges=3,
    nonlocal_steps=2,
    iteration_corrections=True,
    contrast=1.4,
    prior=True,
    density=12,
    second_stage="refine",
    refine_units=(2, 1, 1, 1),
    start=replace(_SMALL_START, learned=0.005, offset=8.0),
)
"""Two stages with learned edges, parameters by iteration, a depth-like map, and density in the field."""

_FREE = replace(
    _SMALL_PRIOR,
    name="free",
    decoder_widths=(32, 48, 80, 128),
    decoder_blocks=(0, 1, 1, 1),
    upsampling="smooth",
    prior_decoder="shared",
    refine_units=(1, 1, 1, 1),
    start=replace(_SMALL_START, offset=8.0, reach=8.0, share_of_few=1.0, trust_in_many=2.8),
)
"""One decoder for the depth-like map and the field, maps without a lattice, learned edges from the start."""

_GBPN_2 = ModelConfig()
_GBPN_1 = replace(_GBPN_2, name="gbpn-1", iterations=(5,))
PAPER_TEXT: dict[str, Any] = {
    "heads": "light",
    "head_width": 40,
    "damped": "always",
    "edge_sets": "disjoint",
    "far_messages": "by-edge",
    "second_start": "empty",
    "attended": "encoder",
}
"""What the paper's text says where the release differs. The width of the heads, which it leaves open, is the
one that comes closest to its 39.03 M parameters and 62.58 G operations."""

_GBPN_2_PAPER = replace(_GBPN_2, name="gbpn-2-paper", **PAPER_TEXT)
_V3 = replace(
    _GBPN_1, name="v3", block="convolution", neighbours=4, dynamic=False, nonlocal_edges=0, iterations=(3,)
)
_V5 = replace(_V3, name="v5", block="global-local")
_V6 = replace(_V5, name="v6", dynamic=True)
_V7 = replace(_V6, name="v7", nonlocal_edges=3)
_V8 = replace(_V7, name="v8", neighbours=8)

CONFIGS: dict[str, ModelConfig] = {
    config.name: config
    for config in (
        _GBPN_1,
        _GBPN_2,
        replace(_GBPN_2, name="gbpn-2-kitti", image_mean=_KITTI_MEAN, image_std=_KITTI_STD),
        replace(_GBPN_2_PAPER, name="gbpn-1-paper", iterations=(5,)),
        _GBPN_2_PAPER,
        _SMALL,
        replace(_SMALL, name="small-2", iterations=(3, 4), second_stage="refine"),
        replace(_SMALL, name="small-directed", edges="directed"),
        replace(
            _GBPN_1.scaled(0.25),
            name="narrow",
            edges="symmetric",
            heads="trunk",
            head_width=32,
            confidence="log",
            reweighting=0.3,
            start=_SMALL_START,
            relative_heads=True,
        ),
        _SMALL_PRIOR,
        _FREE,
        replace(_V3, name="v1", solver="affine", loss="l2"),
        replace(_V3, name="v2", solver="affine"),
        _V3,
        replace(_V3, name="v4", block="attention"),
        _V5,
        _V6,
        _V7,
        _V8,
        replace(_V8, name="v9", iterations=(5,)),
    )
}
"""All named configurations."""


def named(name: str) -> ModelConfig:
    """The configuration called `name`."""
    if name not in CONFIGS:
        raise InputError(f"no configuration {name!r}; there are {', '.join(CONFIGS)}")
    return CONFIGS[name]
