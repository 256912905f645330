"""The reference with each sweep as one scan over its lines: for exporters, which then write one loop down
instead of a copy of its body for every line. The same numbers, for any size of image.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn.errors import BackendError
from gbpn.gaussian import Gaussian
from gbpn.gbp.reference import cavity_of, nonlocal_step, replace_slots
from gbpn.mrf import senders

__all__ = ["nonlocal_step", "sweep"]

try:
    from torch._higher_order_ops.scan import scan as scan_lines
except ImportError as error:
    raise BackendError(
        f"backend 'scan' needs torch's scan operator, which torch {torch.__version__} lacks ({error}): "
        "export with torch 2.13, or use another backend"
    ) from error


def sweep(
    base: Gaussian,
    messages: Gaussian,
    weight: Tensor,
    difference: Tensor,
    damping: Tensor,
    *,
    direction: int,
    reweighting: float = 1.0,
) -> Gaussian:
    """One serial sweep; see `gbpn.gbp.reference.sweep`."""
    edges = weight.shape[1]
    slots = senders(direction, edges)
    reverse = tuple(7 - slot for slot in slots)
    others = [slot for slot in range(8) if slot not in slots + reverse]
    rho = reweighting

    def planes(maps: Tensor, which: tuple[int, ...] | list[int]) -> Tensor:
        return torch.stack([maps[:, slot] for slot in which], 1)

    def kept(own: Tensor, local: Tensor) -> Tensor:
        return own + rho * planes(local, others).sum(1, keepdim=True)

    lines = _lines(
        torch.cat(
            (
                kept(base.information, messages.information),
                kept(base.precision, messages.precision),
                planes(messages.information, slots),
                planes(messages.precision, slots),
                planes(messages.information, reverse),
                planes(messages.precision, reverse),
                weight / rho,
                difference,
                damping,
            ),
            1,
        ),
        direction,
    )  # [lines, B, 3 + 6·E, P]
    sizes = [1, 1, *(edges for _ in range(6)), 1]

    def hear(told: Tensor, line: Tensor) -> tuple[Tensor, Tensor]:
        """One line: `told` [B, 2·E, P] is what the line before says, information and precision."""
        kept_i, kept_p, old_i, old_p, back_i, back_p, edge_weight, expected, share = torch.split(
            line, sizes, 1
        )
        before, old = Gaussian(*torch.split(told, edges, 1)), Gaussian(old_i, old_p)
        message = before.across(edge_weight, expected)
        message = message.damped(old, share).where(old.informed, message)
        new = message.where(before.informed, old)
        after = cavity_of(Gaussian(kept_i[:, 0], kept_p[:, 0]), new, Gaussian(back_i, back_p), rho)
        heard = torch.cat((new.information, new.precision), 1)
        return torch.cat((after.information, after.precision), 1), heard

    nothing = lines.new_zeros(lines.shape[1], 2 * edges, lines.shape[3])
    _, heard = scan_lines(hear, nothing, lines)
    information, precision = torch.split(_maps(heard, direction), edges, 1)
    return Gaussian(
        replace_slots(messages.information, slots, information),
        replace_slots(messages.precision, slots, precision),
    )


def _lines(maps: Tensor, direction: int) -> Tensor:
    """[B, C, H, W] → [lines, B, C, P], lines in the order in which the sweep visits them."""
    lines = maps.permute(3, 0, 1, 2) if direction % 2 == 0 else maps.permute(2, 0, 1, 3)
    return lines if direction < 2 else lines.flip(0)


def _maps(lines: Tensor, direction: int) -> Tensor:
    """Inverse of `_lines`."""
    lines = lines if direction < 2 else lines.flip(0)
    return lines.permute(1, 2, 3, 0) if direction % 2 == 0 else lines.permute(1, 2, 0, 3)
