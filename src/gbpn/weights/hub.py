"""The Hugging Face hub, by its conventions: a folder with `config.json` and `model.safetensors`."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from gbpn.errors import BackendError, CheckpointError
from gbpn.files.atomic import write_bytes
from gbpn.weights.files import Saveable, save

__all__ = ["choose", "download", "push_to_hub", "save_pretrained"]

_WEIGHTS, _CONFIG = "model.safetensors", "config.json"
_RELEASED = "result_ema.pth"
"""The authors' averaged weights; their hub folders are named after the data set."""


def save_pretrained(model: Saveable, folder: str | os.PathLike[str], *, half: bool = False) -> Path:
    """Write `config.json`, `model.safetensors` and a model card that `gbpn.load(folder)` reads back."""
    target = Path(folder)
    save(model, target / _WEIGHTS, half=half)
    config = json.dumps(model.config.as_dict(), indent=2) + "\n"
    write_bytes(target / _CONFIG, config.encode())
    write_bytes(target / "README.md", _card_text(model).encode())
    return target


def push_to_hub(model: Saveable, repo_id: str, *, half: bool = False, private: bool = False) -> str:
    """Upload what `save_pretrained` writes; returns the address. Needs a login of huggingface_hub."""
    api = _library().HfApi()
    api.create_repo(repo_id, private=private, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(model, folder, half=half)
        return str(api.upload_folder(repo_id=repo_id, folder_path=folder))


def download(hub_id: str) -> tuple[Path, str | None]:
    """(weight file, configuration its folder suggests) of "owner/name" or "owner/name/folder"."""
    library = _library()
    owner, name, *folder = hub_id.split("/")
    repository, inside = f"{owner}/{name}", "/".join(folder)
    try:
        files = library.list_repo_files(repository)
        chosen = choose(files, inside, hub_id)
        path = Path(library.hf_hub_download(repository, chosen))
    except CheckpointError:
        raise
    except Exception as error:  # the library raises many kinds, for every way a network can fail
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(f"could not get {hub_id!r} from the hub: {reason}") from error
    return path, "gbpn-2-kitti" if chosen.endswith(_RELEASED) and "kitti" in chosen.lower() else None


def choose(files: list[str], inside: str, hub_id: str) -> str:
    """The one weight file in folder `inside` of a repository's files."""
    prefix = f"{inside}/" if inside else ""
    for weights in (_WEIGHTS, _RELEASED):
        if prefix + weights in files:
            return prefix + weights
    below = sorted(f.rsplit("/", 1)[0] for f in files if f.startswith(prefix) and f.endswith(f"/{_RELEASED}"))
    if len(below) == 1:
        return f"{below[0]}/{_RELEASED}"
    if below:
        repository = "/".join(hub_id.split("/")[:2])
        choices = ", ".join(f"{repository}/{folder}" for folder in below)
        raise CheckpointError(f"{hub_id!r} holds several weights; name one: {choices}")
    raise CheckpointError(f"{hub_id!r} holds neither {_WEIGHTS} nor {_RELEASED}")


_HUB_LICENCES = (
    "mit",
    "apache-2.0",
    "bsd-3-clause",
    "cc-by-4.0",
    "cc-by-nc-4.0",
    "cc-by-nc-sa-4.0",
    "cc0-1.0",
)
"""Licences that the hub knows by name; any other is "other" with a name of its own."""
_HUB_DATASETS = {"NYUv2": "sayakpaul/nyu_depth_v2"}
"""Training data that has a page on the hub, by how a card names it."""


def _card_text(model: Saveable) -> str:
    """A model card with the fields that the hub reads, from what the weights carry."""
    card = dict(model.card)
    licence, data = str(card.pop("licence", "not stated")), str(card.pop("training_data", "not stated"))
    numbers = card.pop("numbers", {})
    numbers = numbers if isinstance(numbers, dict) else {}
    head: dict[str, Any] = {
        "library_name": "gbpn",
        "pipeline_tag": "depth-estimation",
        "tags": ["depth-completion", "uncertainty", "gaussian-belief-propagation", "sparse-depth"],
    }
    if licence.lower() in _HUB_LICENCES:
        head["license"] = licence.lower()
    else:
        head |= {"license": "other", "license_name": "see-below", "license_link": "#licence"}
    if datasets := [page for name, page in _HUB_DATASETS.items() if name in data]:
        head["datasets"] = datasets
    if measured := {key: value for key, value in numbers.items() if isinstance(value, int | float)}:
        head["metrics"] = [key for key in ("rmse", "mae", "rel") if key in measured]
        head["model-index"] = [_index_entry(model.config.name, str(numbers.get("protocol", "")), measured)]
    rows = [f"| {key} | {value} |" for key, value in numbers.items()]
    parts = [
        f"# {model.config.name}",
        "Depth completion with uncertainty: a photo and a few depth measurements in, metric depth of every "
        "pixel and its σ out. Weights for [gbpn](https://pypi.org/project/gbpn).",
        "## Use\n\n```python\nimport gbpn\n\n"
        "completer = gbpn.DepthCompleter.from_pretrained(FOLDER_OR_HUB_ID)\n"
        'result = completer("photo.jpg", "depth.png", scale=1000)\nresult.depth, result.confidence\n```',
        f"## Licence\n\n{licence}",
        f"## Training data\n\n{data}",
        "## Numbers\n\n"
        + ("\n".join(["| | |", "|---|---|", *rows]) if rows else "None were stored with the weights."),
        *(f"## {key.replace('_', ' ').capitalize()}\n\n{_words(value)}" for key, value in card.items()),
    ]
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n\n" + "\n\n".join(parts) + "\n"
    )


def _index_entry(name: str, protocol: str, numbers: dict[str, int | float]) -> dict[str, Any]:
    """One result table as the hub shows it beside a model."""
    metrics = [{"type": key, "name": key, "value": value} for key, value in numbers.items()]
    return {
        "name": name,
        "results": [
            {
                "task": {"type": "depth-estimation", "name": "depth completion"},
                "dataset": {"type": "other", "name": protocol or "see below"},
                "metrics": metrics,
            }
        ],
    }


def _words(value: Any) -> str:
    return f"```json\n{json.dumps(value, indent=1)}\n```" if isinstance(value, dict | list) else str(value)


def _library() -> ModuleType:
    try:
        import huggingface_hub
    except ImportError as error:
        raise BackendError("the hub needs an optional package: pip install gbpn[hub]") from error
    return huggingface_hub
