"""What runs on the server: a line when a flow run of ours begins, and one when it ends."""

import base64
import datetime
import uuid
from collections.abc import Generator, Iterator

import httpx

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


class PrefectAuth(httpx.Auth):
    """Adds the server's password, if it has one, and its CSRF token, which it asks for when one is needed."""

    requires_response_body = True

    def __init__(self, password: str = "") -> None:
        encoded = base64.b64encode(password.encode()).decode()
        self._headers = {"Authorization": f"Basic {encoded}"} if password else {}
        self._headers["Prefect-Csrf-Client"] = str(uuid.uuid4())

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sends a request, and again with a new token if the server rejects that of the first."""
        request.headers.update(self._headers)
        if (yield request).status_code != httpx.codes.FORBIDDEN:
            return
        client = {"client": self._headers["Prefect-Csrf-Client"]}
        url = request.url.join("/api/csrf-token")
        answer = yield httpx.Request("GET", url, params=client, headers=self._headers)
        if answer.is_success:
            self._headers["Prefect-Csrf-Token"] = answer.json()["token"]
            request.headers.update(self._headers)
            yield request


def client(url: str, password: str = "", timeout: float = 5.0) -> httpx.Client:
    """A client of the Prefect server at a URL, with its USER:PASSWORD if it has one."""
    return httpx.Client(base_url=f"{url}/api", auth=PrefectAuth(password), timeout=timeout, trust_env=False)
