"""Declares settings classes with a JSON schema for Prefect's Run form. Unknown names of settings are errors.

The form shows the description of a field but not its bounds, so the bounds are appended to the description:
"Dimensions (2 to 4,096)".

If a setting is a union of strategies, the form selects the strategy whose properties include the most keys of
the value, and ignores constants in the schema (prefect 3.8.8, both UIs). In the schema, the key for the name
of a strategy is therefore different for each strategy: `strategy_adam` instead of `name`. Validation accepts
both keys.
"""

from dataclasses import MISSING, dataclass, field
from typing import Any, TypeVar, dataclass_transform

SettingsT = TypeVar("SettingsT")

BOUND_PHRASES = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def complete_schema(schema: dict[str, Any]) -> None:
    """Changes the JSON schema of a settings class in place, for the form.

    Appends the bounds of each field to its description, and converts the defaults to the keys of the form.
    """
    for key, field_schema in schema.get("properties", {}).items():
        bounds = {
            phrase: f"{field_schema[keyword]:,}"
            for keyword, phrase in BOUND_PHRASES.items()
            if keyword in field_schema
        }
        bounds_text = ", ".join(f"{phrase} {bound}" for phrase, bound in bounds.items())
        if bounds.keys() == {"at least", "at most"}:
            bounds_text = " to ".join(bounds.values())
        if bounds_text:
            field_schema["description"] = f"{field_schema.get('description', '').rstrip('.')} ({bounds_text})"
        if "default" in field_schema:
            field_schema["default"] = to_form_json(field_schema["default"])
        if key.startswith("strategy_"):  # clients of the API send `name`, which is not a key of the form
            schema["patternProperties"] = {"^name$": {"const": field_schema["const"]}}


def to_form_json(value: Any) -> Any:
    """Converts settings to the JSON of Prefect's form, which has the key ``strategy_NAME`` for ``name``."""
    if isinstance(value, dict):
        name_key = f"strategy_{value['name']}" if isinstance(value.get("name"), str) else "name"
        return {name_key if key == "name" else key: to_form_json(item) for key, item in value.items()}
    return [to_form_json(item) for item in value] if isinstance(value, list | tuple) else value


FORM: Any = {"extra": "forbid", "validate_by_name": True, "json_schema_extra": complete_schema}


def setting(default: Any, description: str, **constraints: Any) -> Any:
    """Declares a field of a settings class.

    Args:
        default: Default value; ``...`` if the field is required.
        description: Text shown in the form.
        constraints: As in ``pydantic.Field``; ``keyed=False`` excludes the field from the cache key.
    """
    field_default = MISSING if default is ... else default
    return field(default=field_default, metadata={"description": description, **constraints})


@dataclass_transform(kw_only_default=True, frozen_default=True)
def configurable(cls: type[SettingsT]) -> type[SettingsT]:
    """Makes a class a frozen keyword-only dataclass of settings; with a constant ``name``, a strategy."""
    cls.__pydantic_config__ = FORM  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(name := cls.__dict__.get("name"), str):
        name_metadata = {"validation_alias": f"strategy_{name}", "title": "Strategy"}
        cls.name = field(default=name, metadata=name_metadata)  # pyright: ignore[reportAttributeAccessIssue]
    return dataclass(frozen=True, kw_only=True)(cls)
