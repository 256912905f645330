"""Small structured files → plain Python: JSON, YAML, and what OpenCV's FileStorage writes (YAML, XML, JSON).

Matrices of OpenCV become arrays. Nothing in a file can make objects, follow paths or grow beyond its size:
document types and towers of aliases are refused, and so are files of more than a megabyte.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml

from gbpn.files.guard import reading
from gbpn.formats.arrays import numeric

__all__ = ["STRUCTURED", "read_structured"]

STRUCTURED = (".json", ".yaml", ".yml", ".xml")
"""Suffixes of such files."""
_LARGEST = 1_000_000
"""Bytes of a calibration file; transforms.json of long captures has its own limit."""
_LARGEST_JSON = 100_000_000


def read_structured(path: str | Path, expected: str) -> dict[str, Any]:
    """The names and values of a file; `expected` says in an error what should be in it."""
    path = Path(path)
    with reading(path, "calibration file", expected):
        suffix = path.suffix.lower()
        if path.stat().st_size > (_LARGEST_JSON if suffix == ".json" else _LARGEST):
            raise ValueError(f"a file of {path.stat().st_size} bytes")
        text = path.read_text(encoding="utf-8-sig")
        if suffix == ".json":
            content = _matrices(json.loads(text))
        elif suffix == ".xml":
            content = _xml(text)
        else:
            content = _yaml(text)
        if not isinstance(content, dict):
            raise ValueError(f"wanted names and values; got a {type(content).__name__}")
    return content


class _Loader(yaml.SafeLoader):
    """YAML with OpenCV's matrices; it makes nothing else than numbers, words, lists and tables."""


def _yaml_matrix(loader: _Loader, node: yaml.Node) -> np.ndarray:
    assert isinstance(node, yaml.MappingNode)
    return _matrix(loader.construct_mapping(node, deep=True))


_Loader.add_constructor("tag:yaml.org,2002:opencv-matrix", _yaml_matrix)


def _yaml(text: str) -> Any:
    text = re.sub(r"\A%YAML:\d\.\d\s*\n", "", text)  # OpenCV's first line is no YAML
    documents = list(yaml.load_all(text, _Loader))
    content = next((document for document in documents if document is not None), None)
    _require_few(content)
    return content


def _require_few(content: Any) -> None:
    """Raise where aliases of aliases stand for more values than a file of this size could hold."""
    waiting, count = [content], 0
    while waiting:
        value = waiting.pop()
        count += 1
        if count + len(waiting) > _LARGEST:
            raise ValueError(f"aliases that stand for more than {_LARGEST} values")
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _matrices(value: Any) -> Any:
    """JSON with OpenCV's matrices as arrays."""
    if isinstance(value, dict):
        if value.get("type_id") == "opencv-matrix":
            return _matrix(value)
        return {name: _matrices(part) for name, part in value.items()}
    return value


def _matrix(table: dict[Any, Any]) -> np.ndarray:
    values = numeric(table["data"]).astype(np.float64)
    return values.reshape(int(table["rows"]), int(table["cols"]))


def _xml(text: str) -> dict[str, Any]:
    if "<!" in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL):
        raise ValueError("a document type, which no calibration needs")
    root = ElementTree.fromstring(text)
    if root.tag != "opencv_storage":
        raise ValueError(f"wanted <opencv_storage>; got <{root.tag[:40]}>")
    return {part.tag: _xml_value(part) for part in root}


def _xml_value(part: ElementTree.Element) -> Any:
    if part.get("type_id") == "opencv-matrix":
        words = (part.findtext("data") or "").split()
        rows, columns = int(part.findtext("rows") or 0), int(part.findtext("cols") or 0)
        return np.array([float(word) for word in words]).reshape(rows, columns)
    if len(part):
        return {inner.tag: _xml_value(inner) for inner in part}
    text = (part.text or "").strip().strip('"')
    words = text.split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers
