"""Saves and loads models that contain offloaded embeddings, in pieces.

``model.state_dict()`` would copy every table in memory, and does not contain the optimizer state of the rows.
"""

from pathlib import Path

from safetensors import safe_open
from torch import Tensor, nn

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.streaming import Section, as_section, write_safetensors


def save_model(model: nn.Module, file: str | Path) -> None:
    """Writes the parameters, buffers and embedding rows (with optimizer state) of a model, atomically.

    The file has the safetensors format.
    """
    sections: dict[str, Section] = {}
    metadata: dict[str, str] = {}
    tensors: dict[str, Tensor] = {}  # parameters and buffers of all modules that are not embeddings
    for name, module in model.named_modules():
        prefix = f"{name}." if name else ""
        if isinstance(module, OffloadedEmbedding):
            sections |= {prefix + key: section for key, section in module.table.sections().items()}
            metadata[prefix + "embedding"] = module.metadata()
        else:
            module._save_to_state_dict(tensors, prefix, keep_vars=False)
    sections |= {name: as_section(tensor) for name, tensor in tensors.items()}
    write_safetensors(Path(file), sections, metadata)


def load_model(model: nn.Module, file: str | Path) -> None:
    """Loads a file that ``save_model`` wrote into a model with the same modules; cache sizes may differ.

    Raises:
        ValueError: An embedding was saved with another size, type or optimizer.
        RuntimeError: A parameter or buffer is missing or unknown, or has another shape.
    """
    embeddings = {
        f"{name}." if name else "": module
        for name, module in model.named_modules()
        if isinstance(module, OffloadedEmbedding)
    }
    with safe_open(file, framework="pt") as tensor_file:
        other_tensors = {
            name: tensor_file.get_tensor(name)
            for name in tensor_file.keys()  # noqa: SIM118  (safe_open is no mapping)
            if not name.startswith(tuple(embeddings))
        }
        for prefix, embedding in embeddings.items():
            embedding.restore(tensor_file, prefix)
    missing_names, unknown_names = model.load_state_dict(other_tensors, strict=False)
    missing_names = [name for name in missing_names if not name.startswith(tuple(embeddings))]
    if missing_names or unknown_names:
        problem = f"{file} lacks {sorted(missing_names)}, and the model lacks {sorted(unknown_names)}"
        raise RuntimeError(f"{problem}; load the file into a model with the same modules")
