"""Builds the HTTP application of ``guidespace serve``: titles, merged guide, model file, health, metrics."""

import hmac
import json
import time
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Request, Response
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
from flows.serving.batcher import RequestBatcher
from flows.serving.guide import PATHS, add_guide_routes
from flows.serving.loaded_model import RequestKind
from flows.serving.model_file import add_model_file
from flows.serving.reloader import ModelReloader
from flows.serving.schema import (
    MAX_BODY_BYTES,
    Answers,
    Categories,
    ErrorResponse,
    Health,
    Similar,
    SimilarRequest,
    TitlesRequest,
    Vector,
    format_validation_error,
)
from storage.tracking import Champion
from tasks.pages import encode_data, render_page

HERE = Path(__file__).parent
ENDPOINTS = ("/similar", "/vectors", "/categories", "/model")
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "the request is invalid; `reason` says what to change"},
    401: {"model": ErrorResponse, "description": "the token is missing or wrong"},
    503: {"model": ErrorResponse, "description": "the home lacks data, or too many requests are queued"},
}
CHALLENGE = {"WWW-Authenticate": "Bearer"}  # required in responses 401 by RFC 9110
RequestT = TypeVar("RequestT", bound=TitlesRequest)


class Metrics:
    """Prometheus metrics of the requests by path, and of the model."""

    def __init__(self, reloader: ModelReloader) -> None:
        self.registry = CollectorRegistry()
        options = {"registry": self.registry, "namespace": "guidespace"}
        labels = ["path", "status"]
        self.requests = Counter("requests", "Requests by path and HTTP status", labels, **options)
        self.errors = Counter("errors", "Requests with status 400 or above", labels, **options)
        self.seconds = Histogram(
            "request_seconds", "Time to answer a request", ["path"], buckets=LATENCY_BUCKETS, **options
        )
        self.titles = Counter("titles", "Requested titles by path", ["path"], **options)
        description = "Requested titles of requests that were answered from the cache"
        self.cached_titles = Counter("cached_titles", description, ["path"], **options)
        self._model = Gauge("model_info", "The serving model", ["model", "version", "digest"], **options)
        reload_gauge = Gauge("model_reloads", "Number of times that another model was loaded", **options)
        reload_gauge.set_function(lambda: reloader.reloads)
        failure_gauge = Gauge(
            "reload_failures", "Number of failed attempts to check for or load a model", **options
        )
        failure_gauge.set_function(lambda: reloader.failures)
        stale_gauge = Gauge(
            "stale", "1 if the last attempt to check for or load a model failed, else 0", **options
        )
        stale_gauge.set_function(lambda: reloader.is_stale)
        ProcessCollector(registry=self.registry)
        self._reloader = reloader

    def render(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        champion = self._reloader.current.champion
        self._model.clear()
        self._model.labels(self._reloader.name, champion.version, champion.digest).set(1)
        return generate_latest(self.registry)


class MetricsMiddleware:
    """ASGI middleware that counts requests and measures their durations."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards one request to the application, and records its status and duration."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start_time, status = time.perf_counter(), 500
        file_path = "/" + scope["path"].rpartition("/")[2]  # without the token of a path
        path = scope["path"] if scope["path"] in ENDPOINTS else file_path if file_path in PATHS else "other"

        async def send_and_record(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_record)
        finally:
            self.metrics.requests.labels(path, status).inc()
            if status >= 400:
                self.metrics.errors.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start_time)


def make_app(reloader: ModelReloader, token: str = "", host: str = "localhost") -> FastAPI:
    """Builds the FastAPI application that answers requests with the loaded model.

    Args:
        reloader: Holds the loaded model.
        token: Secret that clients must send, except for /health and /docs. If it is empty, requests from web
            pages of other sites are rejected instead (see SameSite).
        host: Name or address by which clients reach the server.
    """
    metrics, bearer = Metrics(reloader), HTTPBearer(auto_error=False)

    def check_token(authorization: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> None:
        # Starlette decodes headers as latin-1.
        credentials = authorization.credentials.encode("latin-1") if authorization else b""
        if not hmac.compare_digest(credentials, token.encode()):
            problem = "the token is wrong" if authorization else "the token is missing"
            raise HTTPException(401, f"{problem}; expected the header Authorization: Bearer TOKEN", CHALLENGE)

    def check_path_token(path_token: str) -> None:
        if not token:
            raise HTTPException(404)
        if not hmac.compare_digest(path_token.encode(), token.encode()):
            raise HTTPException(401, "the token in the path is wrong; expected /TOKEN/guide.xml", CHALLENGE)

    app = FastAPI(
        title="GuideSpace",
        version="1",
        description="Titles of a TV guide: similar titles, vectors, categories.",
        docs_url=None,
        redoc_url=None,
        responses=ERROR_RESPONSES,
    )
    auth: dict[str, Any] = {"dependencies": [Depends(check_token)]} if token else {}
    if not token:
        app.add_middleware(SameSite, hosts=[host])
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    _add_title_routes(app, reloader, metrics, auth)
    _add_status_routes(app, reloader, metrics, auth)
    add_model_file(app, reloader, auth)
    add_guide_routes(app, reloader.home, auth, check_path_token)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        data, scripts = encode_data(app.openapi()), [HERE / "docs.js"]
        return HTMLResponse(render_page(HERE / "docs.html", "GuideSpace", HERE / "docs.css", data, scripts))

    app.exception_handler(HTTPException)(_error_response)
    return app


def _add_title_routes(app: FastAPI, reloader: ModelReloader, metrics: Metrics, auth: dict[str, Any]) -> None:
    """Adds the routes that answer queries about titles; ``auth`` contains keyword arguments of routes."""
    batcher = RequestBatcher(reloader.answer)

    async def respond(request: Request, kind: RequestKind, titles: TitlesRequest) -> Response:
        queries = titles.queries()
        metrics.titles.labels(request.url.path).inc(len(queries))
        if results := reloader.cached_answers(kind, queries):
            metrics.cached_titles.labels(request.url.path).inc(len(queries))
        else:
            results = await batcher.submit(kind, queries)
        champion = results[0][0]
        model, answers = _model_json(reloader, champion), b",".join(answer for _, answer in results)
        return Response(b'{"model":%b,"answers":[%b]}' % (model, answers), media_type="application/json")

    @app.post(
        "/similar", response_model=Answers[Similar], openapi_extra=_describe_body(SimilarRequest), **auth
    )
    async def similar(request: Request) -> Response:
        """Returns the titles nearest to each title, as `similar --json`; `tonight`: only of this evening."""
        titles = await _parse_body(request, SimilarRequest)
        return await respond(request, RequestKind("similar", titles.k, titles.tonight), titles)

    @app.post("/vectors", response_model=Answers[Vector], openapi_extra=_describe_body(TitlesRequest), **auth)
    async def vectors(request: Request) -> Response:
        """Returns the vector of each title. Similar titles have similar vectors."""
        return await respond(request, RequestKind("vectors"), await _parse_body(request, TitlesRequest))

    @app.post(
        "/categories", response_model=Answers[Categories], openapi_extra=_describe_body(TitlesRequest), **auth
    )
    async def categories(request: Request) -> Response:
        """Returns the categories of each title and how they were decided, as `guidespace explain --json`,
        with the probability that they are correct.
        """
        return await respond(request, RequestKind("categories"), await _parse_body(request, TitlesRequest))


def _add_status_routes(app: FastAPI, reloader: ModelReloader, metrics: Metrics, auth: dict[str, Any]) -> None:
    """Adds the routes for the state of the server; ``auth`` contains keyword arguments of routes."""

    @app.get("/health", response_model=Health)
    async def health() -> Response:
        """Returns the loaded model, and whether the last check for a newer model failed."""
        model = _model_json(reloader, reloader.current.champion)
        status = "stale" if reloader.is_stale else "ok"
        return Response(
            b'{"status":"%b","model":%b}' % (status.encode(), model), media_type="application/json"
        )

    @app.get("/metrics", response_class=Response, **auth)
    async def serve_metrics() -> Response:
        """Returns requests, errors, latencies, memory and the model in Prometheus' text format."""
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)


def _model_json(reloader: ModelReloader, champion: Champion) -> bytes:
    """Serializes name, version and digest of a model as JSON (``schema.ModelInfo``)."""
    model_info = {"name": reloader.name, "version": champion.version, "digest": champion.digest}
    return json.dumps(model_info).encode()


def _describe_body(request_type: type[TitlesRequest]) -> dict[str, Any]:
    """Returns the OpenAPI description of a request body that ``_parse_body`` parses."""
    schema = request_type.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def _parse_body(request: Request, request_type: type[RequestT]) -> RequestT:
    """Reads and parses the body of a request.

    FastAPI itself would parse the body by Python's json, which is slower, and answer 422 instead of 400.

    Raises:
        HTTPException: 400 if the body is too long or does not match the schema.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            problem = f"the body has more than {MAX_BODY_BYTES:,} bytes"
            raise HTTPException(400, f"{problem}; split the titles over several requests")
    try:
        return request_type.model_validate_json(bytes(body))
    except ValidationError as error:
        raise HTTPException(400, format_validation_error(error)) from error


async def _error_response(request: Request, error: HTTPException) -> JSONResponse:
    missing = f"there is no {request.url.path}; see /docs for the available paths"
    reason = missing if error.status_code == 404 else error.detail
    return JSONResponse({"reason": reason}, error.status_code, error.headers)
