"""The Hugging Face hub, by its conventions: a folder with `config.json` and `model.safetensors`."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import ModuleType

from gbpn.atomic_files import write_bytes
from gbpn.errors import BackendError, CheckpointError
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


def _card_text(model: Saveable) -> str:
    """A model card with the fields that the hub reads, from what the weights carry."""
    card = model.card
    lines = ["---", "library_name: gbpn", "pipeline_tag: depth-estimation"]
    if "licence" in card:
        lines.append(f"license: {str(card['licence']).lower()}")
    lines += ["---", "", f"# {model.config.name}", ""]
    lines += [f"- {key}: {value}" for key, value in card.items()]
    return "\n".join(lines) + "\n"


def _library() -> ModuleType:
    try:
        import huggingface_hub
    except ImportError as error:
        raise BackendError("the hub needs an optional package: pip install gbpn[hub]") from error
    return huggingface_hub
