"""Models as files for other runtimes: one ONNX file of standard operators, or a folder for `gbpn.runtime`."""

from gbpn.export.exported_folder import FORMS, PRECISIONS, export

__all__ = ["FORMS", "PRECISIONS", "export"]
