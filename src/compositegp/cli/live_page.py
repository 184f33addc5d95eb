"""The local page of compositegp serve: a web server in a thread, which shows what the stream publishes."""

import json
import socket
import threading
import time
from types import TracebackType
from typing import Any

import pandas as pd
import uvicorn
from fastapi import FastAPI, Response

from compositegp.cli.html_page import render_page
from compositegp.cli.output import CommandError, to_json
from compositegp.forecasting import CompositeGPForecaster

_MOST_HISTORY = 1000  # latest values that the page shows
_SECONDS_TO_START, _SECONDS_TO_END = 30.0, 10.0


class LivePage:
    """A web server with the latest forecast, inside a ``with`` block.

    It answers ``/`` (a page that refers to nothing outside of it), ``/forecast.json`` and ``/healthz``. Its thread
    reads only text that `publish` has made: it never touches the model.

    Parameters
    ----------
    host : str
        Address to listen at.
    port : int
        0 takes one that is free.
    title : str
    """

    def __init__(self, host: str, port: int, title: str) -> None:
        self._content = b"null"
        self._is_following = False
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise CommandError(
                f"cannot listen at {host}, port {port}: {error.strerror or error}. Give another --port or --host."
            ) from error
        address = f"[{host}]" if family == socket.AF_INET6 else host
        self.url = f"http://{address}:{self._socket.getsockname()[1]}/"
        self._server = uvicorn.Server(uvicorn.Config(self._app(title), log_level="warning", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> "LivePage":
        self._thread.start()
        end = time.monotonic() + _SECONDS_TO_START
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                raise CommandError(f"the web server at {self.url} did not start.")
            time.sleep(0.01)
        self._is_following = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_following = False
        self._server.should_exit = True
        self._thread.join(_SECONDS_TO_END)
        self._socket.close()

    def publish(self, model: CompositeGPForecaster, forecast: pd.DataFrame | None) -> None:
        """Show the latest values of a model and its forecast; None where there is none."""
        history = model.observations_.iloc[-_MOST_HISTORY:, [0]]
        history.index.name = "time"
        found = {"latest": model.last_, "forecast": forecast, "history": history}
        self._content = json.dumps({name: to_json(value) for name, value in found.items()}).encode()

    def _app(self, title: str) -> FastAPI:
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)  # their pages load code from elsewhere
        page = render_page("live.html", title=title)

        @app.get("/")
        def show_page() -> Response:
            return Response(page, media_type="text/html")

        @app.get("/forecast.json")
        def tell_forecast() -> Response:
            return Response(self._content, media_type="application/json", headers={"cache-control": "no-store"})

        @app.get("/healthz")
        def tell_health() -> Response:
            state: dict[str, Any] = {"status": "following" if self._is_following else "ended"}
            return Response(json.dumps(state), 200 if self._is_following else 503, media_type="application/json")

        return app
