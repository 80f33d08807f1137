"""The command ``guidespace up``."""

from typing import Annotated

from typer import BadParameter, Option

from flows.cli.commands import FEEDS, HOME, NONE, Home, app

HOST = "interface that the servers listen on; one that other machines reach asks for passwords"
PORT = "0: the one of last time, else its usual one, else a free one"
Host = Annotated[str, Option(metavar="HOST", help=HOST)]
Port = Annotated[int, Option(metavar="PORT", help=PORT, min=0, max=65535)]
Feeds = Annotated[list[str], Option("--feed", metavar="FEED ...", help=f"of every night: {FEEDS}")]


@app.command()
def up(
    home: Home = HOME,
    feeds: Feeds = NONE,
    host: Host = "127.0.0.1",
    prefect_port: Port = 0,
    mlflow_port: Port = 0,
) -> int:
    """Start Prefect, a worker, MLflow and the deployments here."""
    from flows.up.up import stand_up
    from storage.addresses import without_secrets
    from tasks.ingest.check import check_feeds
    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.sources.feeds import is_url

    if feeds:
        check_feeds(feeds, IngestSettings())
    for feed in feeds:
        if is_url(feed) and (bare := without_secrets(feed)) != feed:
            advice = "Prefect would keep it: give env:NAME or secret:NAME (docs/feeds.md)"
            raise BadParameter(f"{bare}: the URL holds a user, password or token. {advice}")
    return stand_up(home, host, prefect_port, mlflow_port, feeds)
