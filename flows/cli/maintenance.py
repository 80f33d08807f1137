"""The commands ``gc`` and ``zone``; imports stand inside, as in commands.py."""

from dataclasses import asdict
from typing import Annotated

from typer import Argument, Option

from flows.cli.commands import HOME, AsJson, Home, app, show

NIGHTS, DAYS, WORDINGS = 7, 90, 365  # kept unless told otherwise; the flow's, too
NIGHTS_ARE = "artifacts of each kind, and models to go back to, that stay"
DAYS_ARE = "days that runs stay in MLflow and Prefect"
WORDINGS_ARE = "days that replaced wordings stay in the catalogue, for --as-of"
SHARED = "also remove this home's runs and models from servers whose database is elsewhere"
ZONE = "IANA name, such as Europe/Paris"
DRY_RUN = "remove nothing, say what would go"


@app.command()
def gc(
    home: Home = HOME,
    nights: Annotated[int, Option(help=NIGHTS_ARE, min=1)] = NIGHTS,
    days: Annotated[int, Option(help=DAYS_ARE, min=1)] = DAYS,
    wordings: Annotated[int, Option(help=WORDINGS_ARE, min=1)] = WORDINGS,
    dry_run: Annotated[bool, Option("--dry-run", help=DRY_RUN)] = False,
    shared: Annotated[bool, Option("--shared", help=SHARED)] = False,
    as_json: AsJson = False,
) -> None:
    """Remove old artifacts, models, runs and wordings. What serves, and what served last, stays."""
    from flows.server import start_prefect
    from storage.home.workspace import Workspace

    folder = str(Workspace(home, create=False).home)
    starting = start_prefect(folder)
    from flows.gc import clean, line

    if starting:
        starting()
    removed = []
    for one in clean(folder, nights, days, wordings, dry_run, shared):
        removed.append(asdict(one))
        if not as_json:
            print(line(one, dry_run), flush=True)
    show(removed, as_json, [])


@app.command()
def zone(name: Annotated[str, Argument(metavar="ZONE", help=ZONE)] = "", home: Home = HOME) -> None:
    """Show or set the time zone of a home. Schedules, dates, evenings and hours of titles use it."""
    from storage.home.workspace import Workspace
    from storage.home.zones import home_zone, set_zone

    folder = Workspace(home, create=bool(name)).home
    if name:
        set_zone(folder, name)
    print(home_zone(folder))
