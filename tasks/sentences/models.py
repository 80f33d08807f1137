"""Identity of a model in settings: the content digest of a folder, or a name."""

from pathlib import Path

from storage.digests import content_digest


def model_identity(package: str, version: str, strategy: str, model: str) -> str:
    """Returns package, version and model; raises a ValueError if no model is set."""
    if not model:
        option = "preprocess.sentences.encoder"
        remedy = f"--set {option}={strategy} --set {option}.model=FOLDER"
        raise ValueError(f"{option}.model names no model of {package}; set {remedy}")
    return f"{package} {version} {content_digest(model) if Path(model).exists() else model}"
