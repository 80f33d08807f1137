"""Declares settings classes with a JSON schema for Prefect's Run form. Unknown names are errors.

The form shows the description of a field but not its bounds, so the bounds are appended to the description:
"Dimensions (2 to 4,096)". For a union, the form selects the member that has the most keys of the value among
its properties, and ignores constants in the schema (prefect 3.8.8, both UIs). Therefore each strategy has a
different key for its name in the schema: `strategy_adam` instead of `name`. Validation accepts both.
"""

from dataclasses import MISSING, dataclass, field
from typing import Any, TypeVar, dataclass_transform

SettingsT = TypeVar("SettingsT")

BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def complete_schema(schema: dict[str, Any]) -> None:
    """Adds bounds and strategy keys to the JSON schema of a settings class, in place."""
    for key, field_schema in schema.get("properties", {}).items():
        bounds = {
            words: f"{field_schema[bound]:,}" for bound, words in BOUNDS.items() if bound in field_schema
        }
        text = ", ".join(f"{words} {bound}" for words, bound in bounds.items())
        if bounds.keys() == {"at least", "at most"}:
            text = " to ".join(bounds.values())
        if text:
            field_schema["description"] = f"{field_schema.get('description', '').rstrip('.')} ({text})"
        if "default" in field_schema:
            field_schema["default"] = to_form_json(field_schema["default"])
        if key.startswith("strategy_"):  # API clients send `name`, which the form does not have
            schema["patternProperties"] = {"^name$": {"const": field_schema["const"]}}


def to_form_json(value: Any) -> Any:
    """Converts settings to JSON; the key of a strategy's name is ``strategy_NAME``, as in the form."""
    if isinstance(value, dict):
        strategy = f"strategy_{value['name']}" if isinstance(value.get("name"), str) else "name"
        return {strategy if key == "name" else key: to_form_json(item) for key, item in value.items()}
    return [to_form_json(item) for item in value] if isinstance(value, list | tuple) else value


FORM: Any = {"extra": "forbid", "validate_by_name": True, "json_schema_extra": complete_schema}


def setting(default: Any, description: str, **constraints: Any) -> Any:
    """Declares a field of a settings class.

    Args:
        default: Default value; ``...`` if the field is required.
        description: Text shown in the form.
        constraints: As in ``pydantic.Field``; ``keyed=False`` excludes the field from the cache key.
    """
    value = MISSING if default is ... else default
    return field(default=value, metadata={"description": description, **constraints})


@dataclass_transform(kw_only_default=True, frozen_default=True)
def configurable(cls: type[SettingsT]) -> type[SettingsT]:
    """Makes a class a frozen keyword-only settings dataclass; a constant ``name`` marks it as a strategy."""
    cls.__pydantic_config__ = FORM  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(name := cls.__dict__.get("name"), str):
        in_schema = {"validation_alias": f"strategy_{name}", "title": "Strategy"}
        cls.name = field(default=name, metadata=in_schema)  # pyright: ignore[reportAttributeAccessIssue]
    return dataclass(frozen=True, kw_only=True)(cls)
