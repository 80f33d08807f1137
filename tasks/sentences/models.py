"""Identity of a model that a setting names: a folder's content, or a name."""

from pathlib import Path

from storage.digests import content_digest


def model_identity(package: str, version: str, strategy: str, model: str) -> str:
    """Package, version and model; a ValueError where no model is named."""
    if not model:
        option = "preprocess.sentences.encoder"
        how = f"--set {option}={strategy} --set {option}.model=FOLDER"
        raise ValueError(f"{option}.model names no model of {package}; {how} does")
    return f"{package} {version} {content_digest(model) if Path(model).exists() else model}"
