"""Gaussian belief propagation in plain torch: the definition that the fast backends are judged by.

Works on any device and dtype and is differentiable by autograd. Conditions (a sender that knows something,
a slot that was already filled, a sample inside the image) are treated as constants by the gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.gaussian import Gaussian
from gbpn.mrf import senders

__all__ = ["cavity_of", "nonlocal_step", "replace_slots", "sample", "sweep"]


def sweep(
    base: Gaussian,
    messages: Gaussian,
    weight: Tensor,
    difference: Tensor,
    damping: Tensor,
    *,
    direction: int,
    reweighting: float = 1.0,
    always: bool = False,
) -> Gaussian:
    """One serial sweep: every line hears the line before it, which has just been updated.

    base        [B, 1, H, W] unary × non-local part of the belief, fixed during the sweep
    messages    [B, 8, H, W] local messages by `gbpn.mrf.RING` slot, stored at the receiver
    weight, difference  [B, E, H, W];  damping [B, 1, H, W]
    always      damp also against an empty slot, and against nothing where the sender knows nothing
    Returns the messages after the sweep.
    """
    slots = senders(direction, weight.shape[1])
    reverse = tuple(7 - slot for slot in slots)
    others = [slot for slot in range(8) if slot not in slots + reverse]
    rho = reweighting

    kept_information = base.information[:, 0] + rho * messages.information[:, others].sum(1)
    kept_precision = base.precision[:, 0] + rho * messages.precision[:, others].sum(1)
    kept = _lines(kept_information, direction), _lines(kept_precision, direction)
    back = (
        _lines(messages.information[:, reverse], direction),
        _lines(messages.precision[:, reverse], direction),
    )
    old = _lines(messages.information[:, slots], direction), _lines(messages.precision[:, slots], direction)
    edge_weight, edge_difference = _lines(weight / rho, direction), _lines(difference, direction)
    edge_damping = _lines(damping, direction)

    cavity: Gaussian | None = None
    heard: list[Gaussian] = []
    for line in range(len(edge_weight)):
        new = Gaussian(old[0][line], old[1][line])  # [B, E, P]
        if always and cavity is None:  # nobody is there before the first line
            cavity = Gaussian.identity_like(new.precision)
        if cavity is not None:
            message = cavity.across(edge_weight[line], edge_difference[line])
            damped = message.damped(new, edge_damping[line])
            new = damped if always else damped.where(new.informed, message).where(cavity.informed, new)
        heard.append(new)
        cavity = cavity_of(
            Gaussian(kept[0][line], kept[1][line]), new, Gaussian(back[0][line], back[1][line]), rho
        )

    information = _maps([g.information for g in heard], direction)
    precision = _maps([g.precision for g in heard], direction)
    return Gaussian(
        replace_slots(messages.information, slots, information),
        replace_slots(messages.precision, slots, precision),
    )


def nonlocal_step(
    base: Gaussian,
    total: Gaussian,
    weight: Tensor,
    difference: Tensor,
    offset: Tensor,
    damping: Tensor,
    *,
    reweighting: float = 1.0,
) -> Gaussian:
    """One parallel step along the learned edges; returns the new damped sum of messages [B, 1, H, W].

    base [B, 1, H, W] unary × local part of the belief; total [B, 1, H, W] the sum from the step before;
    weight, difference [B, K, H, W]; offset [B, K, 2, H, W] (rows, columns); damping [B, 1, H, W].
    """
    information = base.information + reweighting * total.information  # [B, 1, H, W]
    precision = base.precision + reweighting * total.precision
    heard = Gaussian(sample(information, offset), sample(precision, offset))  # [B, K, H, W]
    nothing = Gaussian.identity_like(heard.precision)
    message = heard.across(weight / reweighting, difference).where(heard.informed, nothing)
    summed = Gaussian(message.information.sum(1, keepdim=True), message.precision.sum(1, keepdim=True))
    return summed.damped(total, damping)


def sample(field: Tensor, offset: Tensor) -> Tensor:
    """Bilinear reading of field [B, 1, H, W] at each pixel plus offset [B, K, 2, H, W] → [B, K, H, W].

    Corners outside the image count as zero; a position a whole pixel or more outside reads zero.
    """
    batch, count, _, height, width = offset.shape
    rows = torch.arange(height, device=offset.device, dtype=offset.dtype)[:, None]
    columns = torch.arange(width, device=offset.device, dtype=offset.dtype)
    y, x = rows + offset[:, :, 0], columns + offset[:, :, 1]  # [B, K, H, W]
    inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    top, left = y.detach().floor(), x.detach().floor()
    fraction_y, fraction_x = y - top, x - left
    flat = field.reshape(batch, 1, -1).expand(-1, count, -1)

    def corner(dy: int, dx: int, share: Tensor) -> Tensor:
        row, column = top + dy, left + dx
        valid = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        index = row.clamp(0, height - 1).long() * width + column.clamp(0, width - 1).long()
        value = flat.gather(2, index.reshape(batch, count, -1)).view_as(share)
        return torch.where(valid, share * value, torch.zeros_like(share))

    return (
        corner(0, 0, (1 - fraction_y) * (1 - fraction_x))
        + corner(0, 1, (1 - fraction_y) * fraction_x)
        + corner(1, 0, fraction_y * (1 - fraction_x))
        + corner(1, 1, fraction_y * fraction_x)
    )


def cavity_of(kept: Gaussian, heard: Gaussian, back: Gaussian, reweighting: float) -> Gaussian:
    """What each pixel of a line tells the next line, [B, E, P] by receiving slot, aligned to the receiver.

    Built as a sum of all but the message that came from that receiver: nothing is subtracted for
    reweighting 1, so no digits are lost and an empty cavity is exactly empty.
    """
    edges = heard.precision.shape[1]
    parts = []
    for term, own, reverse in (
        (kept.information, heard.information, back.information),
        (kept.precision, heard.precision, back.precision),
    ):
        common = term + reweighting * own.sum(1)  # [B, P]
        outgoing = []
        for edge in range(edges):
            rest = [reverse[:, e] for e in range(edges) if e != edge]
            cavity = common + reweighting * sum(rest, torch.zeros_like(common))
            if reweighting != 1:
                cavity = cavity - (1 - reweighting) * reverse[:, edge]
            outgoing.append(_towards(cavity, edge - edges // 2))
        parts.append(torch.stack(outgoing, 1))
    information, precision = parts
    return Gaussian(information, precision).where(precision > 0, Gaussian.identity_like(precision))


def _towards(line: Tensor, step: int) -> Tensor:
    """line[..., p + step], zero outside: the sender at cross position `step` seen from each receiver."""
    return torch.nn.functional.pad(line, (1, 1))[..., 1 + step : 1 + step + line.shape[-1]]


def _lines(maps: Tensor, direction: int) -> tuple[Tensor, ...]:
    """[..., H, W] as the lines of a sweep in the order in which it visits them, each [..., P]."""
    lines = maps.unbind(-1 if direction % 2 == 0 else -2)
    return lines if direction < 2 else lines[::-1]


def _maps(lines: list[Tensor], direction: int) -> Tensor:
    """Inverse of `_lines`."""
    return torch.stack(lines if direction < 2 else lines[::-1], -1 if direction % 2 == 0 else -2)


def replace_slots(messages: Tensor, slots: tuple[int, ...], new: Tensor) -> Tensor:
    planes = list(messages.unbind(1))
    for edge, slot in enumerate(slots):
        planes[slot] = new[:, edge]
    return torch.stack(planes, 1)
