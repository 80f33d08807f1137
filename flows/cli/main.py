"""Defines the entry point of the command ``guidespace`` (also ``python -m flows``)."""

import codecs
import io
import json
import os
import sys
from collections.abc import Sequence

from pydantic_core import ValidationError
from typer import BadParameter
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.exceptions import Exit, TyperException
from typer.main import get_group

from flows.cli.commands import app
from flows.cli.exits import DONE, exit_code, report_interrupted, signal_received, watch_signals
from flows.cli.installation import explain_missing
from storage.memory import configure_memory


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the arguments of the command line, runs the command and returns its exit code (exits.py)."""
    os.environ.setdefault("DO_NOT_TRACK", "1")  # no telemetry of Prefect and MLflow by default
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    # After Ctrl-C, the process ends immediately, and multiprocessing would warn of semaphores that are left.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker")
    command, arguments_to_parse = get_group(app), sys.argv[1:] if arguments is None else arguments
    try:
        _check_decoded(arguments_to_parse)
        with command.make_context("guidespace", _repeat_options(command, arguments_to_parse)) as context:
            return int(command.invoke(context) or DONE)
    except Exit as exit_request:  # --help, --version
        return exit_request.exit_code
    except TyperException as error:
        command_path = getattr(getattr(error, "ctx", None), "command_path", "guidespace")
        problems = error.__cause__.errors() if isinstance(error.__cause__, ValidationError) else ()
        values = "".join(f" (got {problem['input']!r})" for problem in problems)
        print(f"guidespace: {error.format_message()}{values} See `{command_path} --help`.", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        report_interrupted()
        return exit_code()
    except BrokenPipeError:  # `guidespace scores | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if signal_received():
            report_interrupted()
            return exit_code()
        from flows.cli.progress import report_error

        return report_error(explain_missing(next(iter(arguments_to_parse), ""), error) or error)


def _check_decoded(arguments: Sequence[str]) -> None:
    """Raises BadParameter if an argument has bytes that the encoding of the locale cannot decode."""
    for argument in arguments:
        if any("\ud800" <= letter <= "\udfff" for letter in argument):
            encoding = sys.getfilesystemencoding()
            advice = "set LC_ALL=C.UTF-8 or PYTHONUTF8=1, or rename the file"
            raise BadParameter(f"{argument!a} is not text in {encoding}; {advice}.")


def _repeat_options(group: TyperGroup, arguments: Sequence[str]) -> list[str]:
    """Rewrites ``--feed A B`` to ``--feed A --feed B``, as Typer requires for several values.

    Applies to options of the subcommand that may be repeated, if the subcommand has no positional arguments:
    after ``sql --with NAME=VALUE`` the next word is the query.
    """
    subcommand = next((argument for argument in arguments if not argument.startswith("-")), "")
    parameters = group.commands[subcommand].params if subcommand in group.commands else []
    has_positional = any(isinstance(parameter, TyperArgument) for parameter in parameters)
    repeatable_options = {
        option
        for parameter in parameters
        if isinstance(parameter, TyperOption) and parameter.multiple and not has_positional
        for option in parameter.opts
    }
    new_arguments, option = [], ""  # option: the repeatable option whose values are being read
    for argument in arguments:
        if option and new_arguments[-1] != option:
            if argument.startswith("-"):
                option = ""
            else:
                new_arguments.append(option)
        if argument.partition("=")[0] in repeatable_options:
            option = argument.partition("=")[0]
        new_arguments.append(argument)
    return new_arguments


def escape_unprintable() -> None:
    """Makes ``print`` escape characters that the terminal cannot show, instead of raising an error."""

    def escape(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("guidespace.escape", escape)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="guidespace.escape")


def entry() -> None:
    """Runs the command ``guidespace``, and ends the process without the slow cleanup of the interpreter."""
    escape_unprintable()
    watch_signals()
    configure_memory()
    from flows.server import exit_process

    exit_process(main())
