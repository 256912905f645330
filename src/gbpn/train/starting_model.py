"""The model that a run begins with: fresh, or grown from trained weights."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gbpn.config import ModelConfig, named
from gbpn.errors import CheckpointError, InputError
from gbpn.model.loading import load
from gbpn.model.models import GBPN, AffineModel, from_config
from gbpn.train.growth import grown
from gbpn.train.learner import trained_with
from gbpn.train.recipe import Recipe

__all__ = ["starting_model"]


def starting_model(recipe: Recipe) -> GBPN | AffineModel:
    """As the recipe says; its configuration names the loss that it will be trained with."""
    if recipe.start_from:
        return _continued(recipe)
    if recipe.first_stage_from:
        raise InputError("first_stage_from replaces a part of start_from; got no start_from")
    model = _of(recipe, named(recipe.model))
    if recipe.imagenet:
        model.start_from_imagenet()
    return model


def _continued(recipe: Recipe) -> GBPN | AffineModel:
    """The model of `start_from`, changed as the recipe says; parts that it did not have start afresh."""
    trained = load(recipe.start_from)
    model = _of(recipe, trained.config)
    state = grown(trained.state_dict(), model.state_dict(), trained.config, model.config)
    _fill(model, state, recipe.start_from)
    if recipe.first_stage_from:
        other = load(recipe.first_stage_from).state_dict()
        first = {name: tensor for name, tensor in other.items() if name.startswith("first.")}
        if not first:
            raise CheckpointError(f"{recipe.first_stage_from} has no first stage to take")
        _fill(model, first, recipe.first_stage_from)
    return model


def _of(recipe: Recipe, config: ModelConfig) -> GBPN | AffineModel:
    """An untrained model of this configuration with the recipe's changes."""
    changed = config.overridden(recipe.model_options)
    return from_config(replace(changed, loss=trained_with(recipe, changed)))


def _fill(model: GBPN | AffineModel, state: dict[str, Tensor], source: str) -> None:
    """Put in what `state` holds; all of it must fit."""
    try:
        _, unknown = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise CheckpointError(f"{source} does not fit the model asked for: {error}") from error
    if unknown:
        raise CheckpointError(f"{source} has {unknown[0]}, which the model asked for has not")
