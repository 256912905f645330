"""A model with the loss it learns by: one forward call gives what `backward` needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from gbpn.config import ModelConfig
from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.model.models import GBPN, AffineModel
from gbpn.model.pipeline import ImageEncoding, SparseDepth
from gbpn.train.losses import l2_loss, probability_loss, scale_free_loss
from gbpn.train.map_loss import shape_loss, surface_loss
from gbpn.train.recipe import Recipe
from gbpn.train.teacher import Teacher

__all__ = ["Learner", "trained_with"]

_Loss = Callable[[DepthDistribution, Tensor], Tensor]
_TAUGHT = 1
"""Level of the decoder that a teacher is held against: 1 is a quarter of the resolution."""


class Learner(nn.Module):
    """Last stage's loss, plus `first_stage` times the first one's where the recipe asks for it."""

    def __init__(self, model: GBPN | AffineModel, recipe: Recipe, teacher: Teacher | None = None) -> None:
        super().__init__()
        self.model = model
        self.teacher, self.teacher_weight = teacher, recipe.teacher_weight
        self.first_stage = 0.0 if recipe.freeze_first_stage else recipe.first_stage
        self.prior = recipe.prior
        self.only_shape = recipe.loss == "shape"
        self.map_loss = _map_loss(recipe)
        self.loss = _loss(recipe, trained_with(recipe, model.config))
        self.frozen = _norms(model, recipe)
        _only(model, recipe.learns)
        self.fast: list[GBPN] = []  # not a part of this module: nothing of it learns or is saved
        self.freezes = recipe.freeze_first_stage
        if self.freezes:
            self.frozen = [*self.frozen, _of_two_stages(model).first.requires_grad_(False)]

    def train(self, mode: bool = True) -> Learner:
        super().train(mode)
        for part in self.frozen:
            part.eval()
        return self

    def forward(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor,
        target: Tensor,
        names: tuple[str, ...] = (),
    ) -> dict[str, Tensor]:
        """Scalar losses by name; "loss" is what is minimised. `names` of the frames, for a teacher."""
        if not isinstance(self.model, GBPN):
            return {"loss": self.loss(self.model(image, sparse, intrinsics), target)}
        pipeline = self.model.pipeline()
        if self.only_shape:
            padded = pipeline.pad(image, intrinsics)
            prior = self.model.first.draw_prior(padded.image, padded.intrinsics)
            return {"loss": self.map_loss(padded.cropped(prior), target, intrinsics)}
        encode = self._frozen_encode if self.freezes else pipeline.encode
        encoding = encode(image, intrinsics)
        *before, answer = pipeline.stages(encoding, SparseDepth(depth=sparse))
        last = self.loss(answer.distribution, target)
        losses = {"loss": last}
        if before and self.first_stage:
            first = self.loss(before[0].distribution, target)
            losses = {"loss": last + self.first_stage * first, "first_stage": first, "last_stage": last}
        priors = [stage.parameters.prior for stage in (*before, answer) if stage.parameters.prior is not None]
        if priors and self.prior:
            shape = torch.stack(
                [self.map_loss(encoding.padded.cropped(prior), target, intrinsics) for prior in priors]
            ).mean()
            losses |= {"loss": losses["loss"] + self.prior * shape, "prior": shape}
        if self.teacher is not None:
            missed = self._missed(self.teacher, encoding, names)
            losses |= {"loss": losses["loss"] + self.teacher_weight * missed, "teacher": missed}
        return losses

    @staticmethod
    def _missed(teacher: Teacher, encoding: ImageEncoding, names: tuple[str, ...]) -> Tensor:
        """How much of the teacher's maps the decoder's features at a quarter of the resolution do not say."""
        features = encoding.parameters.features[_TAUGHT]
        stride = encoding.padded.image.shape[-1] / features.shape[-1]
        return teacher.loss(features, encoding.padded.intrinsics, stride, names)

    @torch.no_grad()
    def _frozen_encode(self, image: Tensor, intrinsics: Tensor) -> ImageEncoding:
        """What the frozen first stage says, by a twin whose norms are merged."""
        if not self.fast:
            self.fast.append(_of_two_stages(self.model).prepared("float32", image.device))
        return self.fast[0].pipeline().encode(image, intrinsics)


def trained_with(recipe: Recipe, config: ModelConfig) -> str:
    """The loss of a run: the recipe's own, or the one that the model is meant for."""
    if recipe.teacher and config.attended == "encoder":
        raise InputError(
            f"a teacher is compared with the decoder's features, which {config.name} does not hand on: set "
            "model.attended=decoder, or leave the teacher out"
        )
    if recipe.loss == "shape":
        if not config.prior:
            raise InputError(
                f"loss=shape teaches a depth-like map; {config.name} has none: set model.prior=True"
            )
        return config.loss  # for what follows
    return config.loss if recipe.loss == "model" else recipe.loss


def _map_loss(recipe: Recipe) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    losses = {"shape": shape_loss, "surface": surface_loss}
    if recipe.map_loss not in losses:
        raise InputError(f"recipe.map_loss must be one of {', '.join(losses)}; got {recipe.map_loss!r}")
    return losses[recipe.map_loss]


def _loss(recipe: Recipe, name: str) -> _Loss:
    losses: dict[str, _Loss] = {
        "probability": partial(probability_loss, alpha1=recipe.alpha1, alpha2=recipe.alpha2),
        "scale-free": partial(
            scale_free_loss, alpha1=recipe.alpha1, alpha2=recipe.alpha2, balance=recipe.balance
        ),
        "l2": l2_loss,
    }
    if name not in losses:
        raise InputError(f"recipe.loss must be one of model, shape, {', '.join(losses)}; got {recipe.loss!r}")
    return losses[name]


def _norms(model: nn.Module, recipe: Recipe) -> list[nn.Module]:
    """The batch norms that keep their statistics."""
    if not (recipe.freeze_statistics or recipe.freeze_encoder_statistics):
        return []
    return [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.BatchNorm2d) and (recipe.freeze_statistics or ".encoder." in f".{name}.")
    ]


def _only(model: nn.Module, learns: tuple[str, ...]) -> None:
    """Parts that the recipe does not name keep their weights."""
    if not learns:
        return
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(learns))
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError(f"recipe.learns names no part of the model; got {', '.join(learns)}")


def _of_two_stages(model: nn.Module) -> GBPN:
    if not isinstance(model, GBPN) or model.second is None:
        raise InputError(
            "freeze_first_stage needs a model of two stages: --set 'model.iterations=(3, 3)' "
            "--set model.second_stage=refine"
        )
    return model
