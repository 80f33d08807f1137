"""Which flow runs on a Prefect server belong to a home.

A flow run gets a tag with the home's id when it begins, whoever started it: a command, the UI or a schedule
(hook ``on_running``). On a server that other projects use, only this tag tells whose a run is: names such as
``nightly`` and a parameter ``home`` may be anybody's.
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

TAG = "guidespace.home="
FLOWS = (
    "ablate", "backfill", "gc", "ingest", "nightly", "patterns", "recommend", "refresh", "searches", "tune",
)  # fmt: skip
READING = ("gc", "patterns", "recommend")  # they need a home that exists
OUR_FLOWS = FlowFilter(name=FlowFilterName(any_=[*FLOWS]))


def tag_with_home(flow: Flow[Any, Any], flow_run: FlowRun, state: State) -> None:
    """Hook ``on_running`` of every flow with a parameter ``home``: tags the run with the home's id."""
    home = Path(str(flow_run.parameters["home"])).expanduser().resolve()
    with suppress(HomeError):  # the flow raises it too
        identity = read_home_id(home) if flow.name in READING else make_home_id(home)
        if identity:
            with get_client(sync_client=True) as client:
                tags = {*client.read_flow_run(flow_run.id).tags, TAG + identity}
                client.update_flow_run(flow_run.id, tags=sorted(tags))


def has_database(client: SyncPrefectClient, home: Path) -> bool:
    """Whether the server's database is the file in the home: GuideSpace started it, for this home.

    The server is asked. PREFECT_HOME may name the home while the API URL leads elsewhere.
    """
    folder = home / "prefect"
    try:
        server_home = client.request("GET", "/admin/settings").json()["home"]
    except (PrefectHTTPStatusError, ValueError, KeyError):  # Prefect Cloud
        return False
    return Path(server_home) == folder and (folder / "prefect.db").exists()


def belongs_to(run: FlowRun, home: Path, *, in_own_database: bool) -> bool:
    """Whether a run of one of FLOWS is this home's.

    Args:
        run: The flow run.
        home: The home.
        in_own_database: The run is in the database in the home. Runs without a tag, which earlier versions
            left there, then count if their parameter names the home or a folder in it (smoke, tune, ablate).
    """
    if TAG + (read_home_id(home) or "none") in run.tags:
        return True
    named = run.parameters.get("home")
    return in_own_database and named is not None and Path(named).expanduser().resolve().is_relative_to(home)
