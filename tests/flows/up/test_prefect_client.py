"""Lines about flow runs that ``guidespace up`` prints."""

import json

import httpx

from flows.up.prefect_client import MAX_RUNS, FlowRunWatcher


def test_runs_after_the_first_request_limit_are_reported_in_order_of_start() -> None:
    runs: list[dict[str, str]] = []  # by start time

    def answer(request: httpx.Request) -> httpx.Response:
        query = json.loads(request.content)
        ordered = runs[::-1] if query["sort"] == "START_TIME_DESC" else runs
        return httpx.Response(200, json=ordered[: query["limit"]])

    with httpx.Client(base_url="http://prefect/api", transport=httpx.MockTransport(answer)) as client:
        watcher = FlowRunWatcher(client)
        for number in range(0, MAX_RUNS + 10, 2):
            new_runs = [f"run {number:02}", f"run {number + 1:02}"]
            runs += [{"id": name, "name": name, "state_name": "Completed"} for name in new_runs]
            lines = list(watcher.describe_changes())
            assert [line.split("  ", 1)[1] for line in lines] == [f"{name}  Completed" for name in new_runs]
