"""Defines the commands on the installation and the home: ``settings``, ``doctor``, ``gc`` and ``zone``."""

import json
from dataclasses import asdict
from typing import Annotated

from typer import Argument, Option

from flows.cli.options import AsJson, Home
from flows.cli.render import show
from flows.defaults import DAYS, DEFAULT_HOME, HISTORY_DAYS, MAX_DAYS, NIGHTS

SETTING_HELP = "list only this setting or section and the settings below it, such as train or train.optimizer"
NIGHTS_HELP = "number of artifacts of each kind, and of models for a rollback, to keep"
DAYS_HELP = "days to keep runs in MLflow and Prefect"
HISTORY_HELP = "days to keep replaced versions of programmes in the catalogue, for --as-of"
SHARED_HELP = "also remove this home's runs and models from servers that other homes use, too"

SettingName = Annotated[str, Argument(metavar="NAME", help=SETTING_HELP)]
Nights = Annotated[int, Option(help=NIGHTS_HELP, min=1)]
Days = Annotated[int, Option(help=DAYS_HELP, min=1, max=MAX_DAYS)]
HistoryDays = Annotated[int, Option(help=HISTORY_HELP, min=1, max=MAX_DAYS)]
Wordings = Annotated[int | None, Option(help="former name of --history-days", min=1, hidden=True)]
DryRun = Annotated[bool, Option("--dry-run", help="remove nothing, print what would be removed")]
IncludeShared = Annotated[bool, Option("--shared", help=SHARED_HELP)]
ZoneViewer = Annotated[str, Option("--viewer", metavar="NAME", help="show or set the zone of this viewer")]
ZoneName = Annotated[str, Argument(metavar="ZONE", help="IANA name, such as Europe/Paris")]


def settings(name: SettingName = "", as_json: AsJson = False, markdown: bool = False) -> None:
    """List the settings with type, default, bounds and description."""
    from flows.cli.settings import list_settings, markdown_lines, setting_lines

    rows = list_settings(name)
    show(rows, as_json, (markdown_lines if markdown else setting_lines)(rows))


def doctor(home: Home = DEFAULT_HOME, as_json: AsJson = False) -> int:
    """Check versions, home, locks and devices."""
    from flows.cli.doctor import examine

    findings = []
    for finding in examine(home):
        findings.append(finding)
        if not as_json:
            print(f"{finding.state:>4}  {finding.about}: {finding.text}", flush=True)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    return any(finding.state == "bad" for finding in findings)


def gc(
    home: Home = DEFAULT_HOME,
    nights: Nights = NIGHTS,
    days: Days = DAYS,
    history_days: HistoryDays = HISTORY_DAYS,
    wordings: Wordings = None,
    dry_run: DryRun = False,
    shared: IncludeShared = False,
    as_json: AsJson = False,
) -> None:
    """Remove old artifacts, models, runs and history. The champion and its predecessor are kept."""
    from flows.server import start_prefect
    from storage.home.workspace import Workspace

    folder = str(Workspace(home, create=False).home)
    wait_for_server = start_prefect(folder)
    from flows.gc import format_removed, remove_old_data

    if wait_for_server:
        wait_for_server()
    documents = []
    history_days = wordings or history_days
    for result in remove_old_data(folder, nights, days, history_days, dry_run=dry_run, shared=shared):
        documents.append(asdict(result))
        if not as_json:
            print(format_removed(result, dry_run), flush=True)
    show(documents, as_json, [])


def zone(name: ZoneName = "", viewer: ZoneViewer = "", home: Home = DEFAULT_HOME) -> None:
    """Show or set the time zone of a home or of a viewer. It applies to schedules, dates and hours."""
    from storage.home.workspace import Workspace
    from storage.home.zones import home_zone, read_zone, set_zone

    folder = Workspace(home, create=bool(name)).home
    if viewer:
        from storage.catalogue.likes import set_viewer_zone, viewer_zone

        if name:
            set_viewer_zone(folder, viewer, read_zone(name).key)
        print(viewer_zone(folder, viewer))
        return
    if name:
        set_zone(folder, name)
    print(home_zone(folder))
