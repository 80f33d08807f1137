"""Identifies the model that a setting names: by the content digest of its folder, or by its name."""

from pathlib import Path

from storage.digests import content_digest


def model_identity(package: str, version: str, strategy: str, model: str) -> str:
    """Returns a string that consists of package, version and model.

    Raises:
        ValueError: The setting names no model.
    """
    if not model:
        option = "preprocess.sentences.encoder"
        raise ValueError(
            f"{option}.model names no model of {package}; set --set {option}={strategy} --set "
            f"{option}.model=FOLDER"
        )
    return f"{package} {version} {content_digest(model) if Path(model).exists() else model}"
