"""What runs on the server: a line when a flow run of ours begins, and one when it ends."""

import base64
import datetime
from collections.abc import Iterator, Mapping

import httpx

from flows.up.network import PREFECT_AUTH

SHOWN = ("RUNNING", "COMPLETED", "FAILED", "CRASHED", "CANCELLED", "PAUSED")
MOST = 50  # runs that are asked for


class FlowRuns:
    """Flow runs with the tag guidespace that began since this was made."""

    def __init__(self, api: httpx.Client) -> None:
        self._client = api
        self._since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=5)
        self._told: dict[str, str] = {}  # flow run id: name of the state

    def changes(self) -> Iterator[str]:
        """Lines for runs whose state has changed since the last call; none while the server is busy."""
        query = {
            "flow_runs": {
                "tags": {"all_": ["guidespace"]},
                "start_time": {"after_": self._since.isoformat()},
                "state": {"type": {"any_": SHOWN}},
            },
            "sort": "START_TIME_ASC",
            "limit": MOST,
        }
        try:
            answer = self._client.post("/flow_runs/filter", json=query)
            found = answer.json() if answer.is_success else []
        except (httpx.HTTPError, ValueError):
            return
        for run in found:
            if self._told.get(run["id"]) != run["state_name"]:
                self._told[run["id"]] = run["state_name"]
                message = (run.get("state") or {}).get("message")
                told = f": {' '.join(message.split())}" if message else ""
                now = datetime.datetime.now()
                yield f"{now:%H:%M:%S}  {run['name']}  {run['state_name']}{told}"


def client(url: str, environment: Mapping[str, str]) -> httpx.Client:
    """A client of Prefect's API, with the server's password where it has one."""
    word = environment.get(PREFECT_AUTH)
    headers = {"Authorization": f"Basic {base64.b64encode(word.encode()).decode()}"} if word else {}
    return httpx.Client(base_url=f"{url}/api", headers=headers, timeout=5.0, trust_env=False)
