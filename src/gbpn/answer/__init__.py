"""What a door hands out: one frame's depth and its uncertainty as plain data, and its files."""

from gbpn.answer.completed import CompletedDepth

__all__ = ["CompletedDepth"]
