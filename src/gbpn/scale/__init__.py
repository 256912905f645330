"""Past one machine: many frames from any storage, each exactly once; needs `pip install gbpn[scale]`."""

from gbpn.scale.complete import complete
from gbpn.scale.records import read_quarantine, read_records
from gbpn.scale.summary import Summary

__all__ = ["Summary", "complete", "read_quarantine", "read_records"]
