"""``--set``: valid changes, and one-line errors for invalid ones."""

import dataclasses
import json

import pytest
from pydantic import TypeAdapter

from flows.settings import PRESETS, Settings
from tasks.cluster.dbscan import DBSCAN
from tasks.optimizers import SGD, Adam, RowwiseAdagrad
from tasks.overrides import SettingError, override
from tasks.text.words import Words
from tasks.train.objectives import Neighbourhood, RareMemory
from tasks.train.objectives.positives import Topics
from tests.contracts.families import families

PLAIN = Settings()


def _value_of(path: str, settings: Settings = PLAIN):
    """Returns the setting with a dotted path; None if the path leads through a list or another strategy."""
    for name in path.strip(".").split("."):
        settings = getattr(settings, name, None)
    return settings


def test_no_changes_give_equal_settings():
    assert override(PLAIN, []) == PLAIN
    for preset in PRESETS.values():
        assert override(preset, []) == preset


def test_values_are_parsed_by_type():
    found = override(
        PLAIN,
        [
            "train.epochs=5",
            "train.dropout=0.25",
            "train.device=cpu",
            " tokenize.splits.salt =another",
            "evaluate.resamples=100",
        ],
    )
    assert (found.train.epochs, found.train.dropout, found.train.device, found.tokenize.splits.salt) == (
        5,
        0.25,
        "cpu",
        "another",
    )
    assert (
        dataclasses.replace(found, train=PLAIN.train, tokenize=PLAIN.tokenize, evaluate=PLAIN.evaluate)
        == PLAIN
    )  # and nothing else


@pytest.mark.parametrize("salt", ["2026", "true", "null", "[1]", "a=b", ""])
def test_any_text_can_be_a_value(salt: str):
    assert override(PLAIN, [f"tokenize.splits.salt={salt}"]).tokenize.splits.salt == salt


def test_a_strategy_is_chosen_by_name_with_its_defaults():
    found = override(PLAIN, ["train.optimizer=adam", "tokenize.tokenizer=words", "cluster.strategy=dbscan"])
    assert (found.train.optimizer, found.tokenize.tokenizer, found.cluster.strategy) == (
        Adam(),
        Words(),
        DBSCAN(),
    )


def test_a_nested_strategy_is_chosen_by_name():
    found = override(PLAIN, ["train.objective=neighbourhood", "train.objective.positives=topics"])
    assert found.train.objective == Neighbourhood(positives=Topics())
    found = override(PLAIN, ["train.encoder.nearest_slot=0.5", "train.objective=rare_memory"])
    assert found.train.objective == RareMemory() and found.train.encoder.nearest_slot == 0.5


def test_a_strategys_fields_can_be_set():
    assert override(PLAIN, ["train.optimizer.learning_rate=0.01"]).train.optimizer == RowwiseAdagrad(
        learning_rate=0.01
    )
    assert override(
        PLAIN, ["train.optimizer=adam", "train.optimizer.learning_rate=0.01", "train.optimizer.beta1=0.8"]
    ).train.optimizer == Adam(learning_rate=0.01, beta1=0.8)
    assert (
        override(PLAIN, ["train.optimizer.learning_rate=0.01", "train.optimizer=sgd"]).train.optimizer
        == SGD()
    )  # the later one wins


def test_the_preset_is_not_changed():
    before = dataclasses.asdict(PLAIN)
    override(PLAIN, ["train.epochs=5", "train.optimizer=sgd"])
    assert dataclasses.asdict(PLAIN) == before


CHOSEN = [
    (path, kind)
    for path, kinds in families(Settings, "")
    for kind in kinds
    if isinstance(_value_of(path), kinds)
]


@pytest.mark.parametrize(("path", "kind"), CHOSEN, ids=lambda value: getattr(value, "__name__", value))
def test_every_strategy_can_be_named(path: str, kind: type):
    assert _value_of(path, override(PLAIN, [f"{path.lstrip('.')}={kind.name}"])) == kind()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "train.epcohs=5",
            r"--set 'train\.epcohs=5': expected NAME=VALUE such as train\.epochs=5; valid names: .*epochs",
        ),
        ("trian.epochs=5", r"--set 'trian\.epochs=5': .*valid names: .*train"),
        ("train.epochs", r"--set 'train\.epochs': expected NAME=VALUE"),
        ("epochs=5", r"--set 'epochs=5': .*valid names: .*augment.*train"),
        ("=5", r"--set '=5': expected NAME=VALUE"),
        ("", r"--set '': expected NAME=VALUE"),
        ("train.epochs.more=5", r"--set 'train\.epochs\.more=5': expected NAME=VALUE"),
        (
            "train.epochs=0",
            r"--set train\.epochs: train\.epochs: Input should be greater than or equal to 1 \(got 0\)",
        ),
        ("train.dropout=1", r"train\.dropout: Input should be less than 1 \(got 1\)"),
        ("train.epochs=many", r"train\.epochs: Input should be a valid integer.* \(got 'many'\)"),
        ("train.epochs=1.5", r"train\.epochs: Input should be a valid integer.* \(got 1\.5\)"),
        ("train.epochs=null", r"train\.epochs: Input should be a valid integer \(got None\)"),
        ("train=adam", r"train: Input should be .* \(got 'adam'\)"),
        (
            "train.optimizer=adagard",
            r"train\.optimizer is 'adagard'; valid names: 'adadelta', 'adagrad', 'adam', .*'sgd'",
        ),
        (
            "train.optimizer.learning_rate=-1",
            r"train\.optimizer\.\w+\.learning_rate: Input should be greater than 0 \(got -1\)",
        ),
        (
            "train.optimizer.beta1=0.5",
            r"train\.optimizer\.\w+\.beta1: Unexpected keyword argument \(got 0\.5\)",
        ),
    ],
)
def test_invalid_settings_are_one_line(assignment: str, message: str):
    with pytest.raises(SettingError, match=message) as error:
        override(PLAIN, [assignment])
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


def test_all_errors_are_reported_together():
    with pytest.raises(SettingError, match=r"train\.dim.*; train\.epochs"):
        override(PLAIN, ["train.epochs=0", "train.dim=1"])


def test_settings_survive_json():
    """What Prefect's form and API send."""
    for preset in PRESETS.values():
        assert TypeAdapter(Settings).validate_json(json.dumps(dataclasses.asdict(preset))) == preset


def test_every_field_has_a_description():
    """The form in the Prefect UI and the help of the command have nothing else to show."""

    def check(schema: dict, place: str) -> None:
        for name, field in schema.get("properties", {}).items():
            assert name.startswith("strategy_") or field.get("description"), (
                f"{place}.{name} has no description"
            )

    schema = TypeAdapter(Settings).json_schema()
    check(schema, "Settings")
    for name, definition in schema["$defs"].items():
        check(definition, name)
        assert definition.get("additionalProperties") is False, f"{name} takes unknown names"


@pytest.mark.parametrize("value", ['["X-Key: Zk9v"]', "X-Key: Zk9v", '[["X-Key: Zk9v"]]'])
def test_an_error_does_not_show_a_secret_of_a_header(value: str):
    with pytest.raises(SettingError, match=r"ingest\.headers: ") as refused:
        override(PLAIN, [f"ingest.headers={value}"])
    assert "Zk9v" not in str(refused.value)
