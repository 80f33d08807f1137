"""The HTTP application: three questions, health, metrics, and a page that explains them."""

import hmac
import json
import time
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flows.same_site import SameSite
from flows.serving.batches import Batches, Unavailable
from flows.serving.schema import (
    MOST_BYTES,
    Asked,
    AskedSimilar,
    CategoryAnswers,
    Health,
    Refusal,
    SimilarAnswers,
    VectorAnswers,
    explain_refusal,
)
from flows.serving.space import Kind, Served
from storage.tracking import Champion
from tasks.pages import encode_data, render_page

HERE = Path(__file__).parent
QUESTIONS = ("/similar", "/vectors", "/categories")
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "what has to change in the request"},
    401: {"model": Refusal, "description": "the token is missing or wrong"},
    503: {
        "model": Refusal,
        "description": "what the home lacks, or that too many requests wait",
    },
}
A = TypeVar("A", bound=Asked)


class Metrics:
    """Counts and times of requests by path, and the model, in a registry of their own."""

    def __init__(self, served: Served) -> None:
        self.registry = CollectorRegistry()
        own = {"registry": self.registry, "namespace": "guidespace"}
        labels = ["path", "status"]
        self.requests = Counter("requests", "Requests answered, by path and HTTP status", labels, **own)
        self.errors = Counter("errors", "Requests answered 400 or above, by path and status", labels, **own)
        self.seconds = Histogram(
            "request_seconds", "From the head of a request to its answer", ["path"], buckets=SECONDS, **own
        )
        self.titles = Counter("titles", "Titles asked for, by path", ["path"], **own)
        self._model = Gauge("model_info", "1 of the model that serves", ["model", "version", "digest"], **own)
        reloads = Gauge("model_reloads", "How often another model was loaded", **own)
        reloads.set_function(lambda: served.reloads)
        failures = Gauge("reload_failures", "How often what serves could not be looked up or loaded", **own)
        failures.set_function(lambda: served.failures)
        stale = Gauge("stale", "1 if the last look-up or load of what serves failed, else 0", **own)
        stale.set_function(lambda: served.is_stale)
        ProcessCollector(registry=self.registry)
        self._served = served

    def told(self) -> bytes:
        """As Prometheus reads them."""
        champion = self._served.space.champion
        self._model.clear()
        self._model.labels(self._served.name, champion.version, champion.digest).set(1)
        return generate_latest(self.registry)


class Counting:
    """Counts and times requests, as ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, status = time.perf_counter(), 500
        path = scope["path"] if scope["path"] in QUESTIONS else "other"

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, tell)
        finally:
            self.metrics.requests.labels(path, status).inc()
            if status >= 400:
                self.metrics.errors.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - started)


def make_app(served: Served, token: str = "", host: str = "localhost") -> FastAPI:
    """Builds the application.

    Args:
        served: The model that answers.
        token: Clients have to send it, except for /health and /docs. Without one, only requests of this
            machine's clients are accepted, none of pages of other sites.
        host: Name or address by which clients reach the server.
    """
    metrics, batches = Metrics(served), Batches(served.answer)
    bearer = HTTPBearer(auto_error=False)

    def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> None:
        found = given.credentials if given else ""
        if not hmac.compare_digest(found.encode("latin-1"), token.encode()):  # as headers are decoded
            what = "another token" if given else "no token"
            raise HTTPException(401, f"{what} was given; expected the header Authorization: Bearer TOKEN")

    app = FastAPI(
        title="GuideSpace",
        version="1",
        description="Titles of a TV guide: what is like them, where they are, what they are.",
        docs_url=None,
        redoc_url=None,
        responses=REFUSED,
    )
    guarded: dict[str, Any] = {"dependencies": [Depends(check)]} if token else {}
    if not token:
        app.add_middleware(SameSite, hosts=[host])
    app.add_middleware(Counting, metrics=metrics)

    async def ask(request: Request, kind: Kind, asked: Asked) -> Response:
        queries = asked.queries()
        metrics.titles.labels(request.url.path).inc(len(queries))
        found = served.kept(kind, queries) or await batches.ask(kind, queries)
        model, answers = _about(served, found[0][0]), b",".join(answer for _, answer in found)
        return Response(b'{"model":%b,"answers":[%b]}' % (model, answers), media_type="application/json")

    @app.post("/similar", response_model=SimilarAnswers, openapi_extra=_body(AskedSimilar), **guarded)
    async def similar(request: Request) -> Response:
        """The nearest titles of the guide, as `guidespace similar --json`; `tonight` for this evening's."""
        asked = await _read(request, AskedSimilar)
        return await ask(request, Kind("similar", asked.k, asked.tonight), asked)

    @app.post("/vectors", response_model=VectorAnswers, openapi_extra=_body(Asked), **guarded)
    async def vectors(request: Request) -> Response:
        """The vector of each title, by which its neighbours are found."""
        return await ask(request, Kind("vectors"), await _read(request, Asked))

    @app.post("/categories", response_model=CategoryAnswers, openapi_extra=_body(Asked), **guarded)
    async def categories(request: Request) -> Response:
        """What each title is and who decided it, as `guidespace explain TITLE --json`, with the probability
        that the vote is right.
        """
        return await ask(request, Kind("categories"), await _read(request, Asked))

    @app.get("/health", response_model=Health)
    async def health() -> Response:
        """Which model serves, and whether the last check for another one succeeded."""
        model, status = _about(served, served.space.champion), "stale" if served.is_stale else "ok"
        return Response(
            b'{"status":"%b","model":%b}' % (status.encode(), model), media_type="application/json"
        )

    @app.get("/metrics", response_class=Response, **guarded)
    async def tell_metrics() -> Response:
        """Requests, errors, times, memory and the model, as Prometheus reads them."""
        return Response(metrics.told(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        files = HERE / "docs.html", "GuideSpace", HERE / "docs.css"
        return HTMLResponse(render_page(*files, encode_data(app.openapi()), [HERE / "docs.js"]))

    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse)
    app.add_exception_handler(Unavailable, _refuse)
    return app


def _about(served: Served, champion: Champion) -> bytes:
    """The model as JSON: schema.Serving."""
    about = {"name": served.name, "version": champion.version, "digest": champion.digest}
    return json.dumps(about).encode()


def _body(kind: type[Asked]) -> dict[str, Any]:
    """What OpenAPI says of a body that ``_read`` reads."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def _read(request: Request, kind: type[A]) -> A:
    """The body of a request; HTTPException 400 where it is too long or not what is expected.

    FastAPI would parse it by Python's json and answer 422.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            what = f"the body has more than {MOST_BYTES:,} bytes"
            raise HTTPException(400, f"{what}; send fewer titles in a request, and several requests")
    try:
        return kind.model_validate_json(bytes(body))
    except ValidationError as error:
        raise HTTPException(400, explain_refusal(error)) from error


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HTTPException):
        status, reason = error.status_code, error.detail
        if status == 404:
            reason = f"there is no {request.url.path}; /docs has what there is"
        return JSONResponse({"reason": reason}, status, error.headers)
    return JSONResponse({"reason": str(error)}, 503 if isinstance(error, Unavailable) else 400)
