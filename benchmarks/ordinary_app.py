"""An ordinary FastAPI endpoint that does nothing, for comparison in `benchmarks/serving.py`."""

import socket

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from service.contract.bodies import PredictionRequest
from service.http.server import configuration
from service.settings import Settings


class Basis(BaseModel):
    """Has the fields of the service's answer."""

    jobs: int
    reason: str


class Interval(BaseModel):
    """Has the fields of the service's answer."""

    lower: float
    upper: float
    coverage: float


class Answer(BaseModel):
    """Has the fields of the service's answer."""

    predicted_walltime: float
    requested_walltime: float
    method: str
    basis: Basis
    interval: Interval | None
    prediction_id: str
    job_id: str | int | None
    cluster: str


def application() -> FastAPI:
    """Without authentication, metrics, history and recording."""
    app = FastAPI()

    @app.post("/v1/predictions")
    async def predict(body: PredictionRequest) -> Answer:
        return Answer(
            predicted_walltime=body.requested_walltime,
            requested_walltime=body.requested_walltime,
            method="requested",
            basis=Basis(jobs=0, reason="request"),
            interval=None,
            prediction_id="0",
            job_id=body.job_id,
            cluster=body.cluster,
        )

    return app


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        settings = configuration(application, Settings(max_connections=1000))
        settings.http = "httptools"  # uvicorn's own, not the service's
        uvicorn.Server(settings).run(sockets=[listener])
