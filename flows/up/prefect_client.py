"""Creates a client of Prefect's REST API, and describes state changes of flow runs as lines of text.

The client uses httpx, because importing Prefect's client takes seconds and 50 MB.
"""

import base64
import datetime
import uuid
from collections.abc import Generator, Iterator

import httpx

from flows.defaults import RUN_TAG

REPORTED_STATES = ("RUNNING", "COMPLETED", "FAILED", "CRASHED", "CANCELLED", "PAUSED")
MAX_RUNS = 50  # flow runs per request, the newest


class FlowRunWatcher:
    """Finds state changes of flow runs with the tag guidespace that start after this object is created."""

    def __init__(self, api: httpx.Client) -> None:
        self._client = api
        self._created_at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=5)
        self._states: dict[str, str] = {}  # flow run id to last reported state

    def describe_changes(self) -> Iterator[str]:
        """Yields a line of text for each flow run whose state has changed since the last call.

        If the server does not answer, yields nothing.
        """
        query = {
            "flow_runs": {
                "tags": {"all_": [RUN_TAG]},
                "start_time": {"after_": self._created_at.isoformat()},
                "state": {"type": {"any_": REPORTED_STATES}},
            },
            "sort": "START_TIME_DESC",
            "limit": MAX_RUNS,
        }
        try:
            response = self._client.post("/flow_runs/filter", json=query)
            runs = response.json() if response.is_success else []
        except (httpx.HTTPError, ValueError):
            return
        for run in reversed(runs):
            if self._states.get(run["id"]) != run["state_name"]:
                self._states[run["id"]] = run["state_name"]
                message = (run.get("state") or {}).get("message")
                suffix = f": {' '.join(message.split())}" if message else ""
                now = datetime.datetime.now()
                yield f"{now:%H:%M:%S}  {run['name']}  {run['state_name']}{suffix}"


class PrefectAuth(httpx.Auth):
    """Adds a password, if the server has one, and a CSRF token to requests.

    The token is requested after the server has rejected the first request.
    """

    requires_response_body = True

    def __init__(self, password: str = "") -> None:
        base64_password = base64.b64encode(password.encode()).decode()
        self._headers = {"Authorization": f"Basic {base64_password}"} if password else {}
        self._headers["Prefect-Csrf-Client"] = str(uuid.uuid4())

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sends a request. If the server rejects it, requests a new CSRF token and sends it again."""
        request.headers.update(self._headers)
        if (yield request).status_code != httpx.codes.FORBIDDEN:
            return
        parameters = {"client": self._headers["Prefect-Csrf-Client"]}
        url = request.url.join("/api/csrf-token")
        response = yield httpx.Request("GET", url, params=parameters, headers=self._headers)
        if response.is_success:
            self._headers["Prefect-Csrf-Token"] = response.json()["token"]
            request.headers.update(self._headers)
            yield request


def make_client(url: str, password: str = "", timeout: float = 5.0) -> httpx.Client:
    """Creates a client of the Prefect server at ``url``.

    Args:
        url: URL of the server, without /api.
        password: USER:PASSWORD; '' if the server has none.
        timeout: Maximum duration of a request in seconds.
    """
    return httpx.Client(base_url=f"{url}/api", auth=PrefectAuth(password), timeout=timeout, trust_env=False)
