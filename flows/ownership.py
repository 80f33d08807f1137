"""Decides which flow runs on a Prefect server belong to a home.

The hook ``on_running`` tags every flow run with the id of its home, whether a command, the UI or a schedule
started it. Other projects on the same server may have flows with the same names and parameters, so only this
tag identifies the runs of a home.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import PrefectHTTPStatusError
from prefect.flows import Flow

from storage.home.identity import make_home_id, read_home_id
from storage.home.workspace import HomeError

TAG_PREFIX = "guidespace.home="  # prefix of the tag with the id of the home
FLOWS = (
    "ablate", "backfill", "gc", "ingest", "nightly", "patterns", "recommend", "refresh", "searches", "tune",
)  # fmt: skip
FLOWS_REQUIRING_HOME = ("gc", "patterns", "recommend")  # flows that do not create a home
FLOW_FILTER = FlowFilter(name=FlowFilterName(any_=[*FLOWS]))


def tag_with_home(flow: Flow[Any, Any], flow_run: FlowRun, state: State) -> None:
    """Tags a flow run with the id of its home: hook ``on_running`` of all flows with a parameter ``home``."""
    home = Path(str(flow_run.parameters["home"])).expanduser().resolve()
    with suppress(HomeError):  # the flow itself raises and reports this error
        home_id = read_home_id(home) if flow.name in FLOWS_REQUIRING_HOME else make_home_id(home)
        if home_id:
            with get_client(sync_client=True) as client:
                tags = {*client.read_flow_run(flow_run.id).tags, TAG_PREFIX + home_id}
                client.update_flow_run(flow_run.id, tags=sorted(tags))


def is_home_server(client: SyncPrefectClient, home: Path) -> bool:
    """Returns whether a Prefect server stores its database in the home, so that it serves only this home.

    Asks the server, because PREFECT_HOME may be the home while PREFECT_API_URL names another server.
    """
    folder = home / "prefect"
    try:
        server_home = client.request("GET", "/admin/settings").json()["home"]
    except (PrefectHTTPStatusError, ValueError, KeyError):  # Prefect Cloud
        return False
    return Path(server_home) == folder and (folder / "prefect.db").exists()


def belongs_to(run: FlowRun, home: Path, *, on_home_server: bool) -> bool:
    """Returns whether a flow run of one of FLOWS belongs to a home.

    Args:
        run: The flow run.
        home: Folder of the home.
        on_home_server: Whether the server's database is in the home. If so, runs without a tag (of earlier
            versions) belong to the home if their parameter ``home`` is the home or a folder in it.
    """
    if TAG_PREFIX + (read_home_id(home) or "none") in run.tags:
        return True
    folder = run.parameters.get("home")
    return on_home_server and folder is not None and Path(folder).expanduser().resolve().is_relative_to(home)
