"""Defines the command ``guidespace up``."""

from typing import Annotated

from typer import BadParameter, Option

from flows.cli.exits import DONE, FAILED
from flows.cli.options import FEEDS_HELP, NO_VALUES, Home
from flows.defaults import DEFAULT_HOME

HOST_HELP = "interface to listen on; passwords are required if other machines can reach it"
PORT_HELP = "port to listen on; 0: the previous port, else the default, else any free port"
Host = Annotated[str, Option(metavar="HOST", help=HOST_HELP)]
Port = Annotated[int, Option(metavar="PORT", help=PORT_HELP, min=0, max=65535)]
Feeds = Annotated[
    list[str], Option("--feed", metavar="FEED ...", help=f"feeds of the nightly runs: {FEEDS_HELP}")
]


def up(
    home: Home = DEFAULT_HOME,
    feeds: Feeds = NO_VALUES,
    host: Host = "127.0.0.1",
    prefect_port: Port = 0,
    mlflow_port: Port = 0,
) -> int:
    """Start Prefect, a worker and MLflow on this machine. Applies the deployments."""
    from flows.up.up import run_servers
    from storage.addresses import without_secrets
    from tasks.ingest.check import check_feeds
    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.sources.feeds import is_url

    if feeds:
        check_feeds(feeds, IngestSettings())
    for feed in feeds:
        if is_url(feed) and (redacted_url := without_secrets(feed)) != feed:
            advice = "Prefect would store it; use env:NAME or secret:NAME (docs/feeds.md)"
            raise BadParameter(f"{redacted_url}: the URL contains a user, password or token. {advice}")
    return DONE if run_servers(home, host, prefect_port, mlflow_port, feeds) else FAILED
