"""Identifies the model of a sentence encoder: a folder by its content digest, others by their name."""

from pathlib import Path

from storage.digests import content_digest


def model_identity(package: str, version: str, strategy: str, model: str) -> str:
    """Returns the identity of an encoder: its package, the version, and the model.

    Raises:
        ValueError: ``model`` is empty.
    """
    if not model:
        option = "preprocess.sentences.encoder"
        raise ValueError(
            f"{option}.model is empty, expected a model of {package}: --set {option}={strategy} --set "
            f"{option}.model=FOLDER"
        )
    return f"{package} {version} {content_digest(model) if Path(model).exists() else model}"
