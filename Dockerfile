# Two stages: the first installs what requirements/ pins by hash and compiles, the second only
# carries it. Reports with pictures need matplotlib, which only requirements/full.txt has:
#
#     docker build --build-arg REQUIREMENTS=full --tag walltimed:full .
#
# The base is pinned by digest. Where no registry can be reached, deploy/tests/base.sh makes another
# for --build-arg BASE.
ARG BASE=docker.io/library/python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
FROM ${BASE} AS build

ARG REQUIREMENTS=runtime
# Machine code for any processor of this kind, so that it fits wherever the image is run. The
# service has the same in its environment, or it would compile for the one that it finds.
ENV NUMBA_CPU_NAME=generic
RUN python -m venv --without-pip /opt/walltimed
COPY requirements /build/requirements
RUN python -m pip --python /opt/walltimed/bin/python install --no-cache-dir --no-compile \
        --no-deps --require-hashes -r /build/requirements/build.txt -r /build/requirements/${REQUIREMENTS}.txt
COPY pyproject.toml README.md LICENSE /build/
COPY predictors /build/predictors
COPY terminal /build/terminal
COPY walltimed /build/walltimed
COPY simulator /build/simulator
COPY service /build/service
COPY migrations /build/migrations
COPY deploy/prune.py /build/
# What a service does not load goes; what every start would compile anew comes in.
RUN cd /build && python -m pip --python /opt/walltimed/bin/python install --no-cache-dir \
        --no-compile --no-deps --no-build-isolation . \
    && python -m pip --python /opt/walltimed/bin/python uninstall --yes --quiet setuptools \
    && python prune.py /opt/walltimed/lib/python3.11/site-packages \
    && cd /opt/walltimed/lib/python3.11/site-packages \
    && /opt/walltimed/bin/python -m compileall -q predictors terminal simulator service walltimed migrations \
    && cd / && /opt/walltimed/bin/walltimed warm-up \
    && /opt/walltimed/bin/python -c 'import psycopg, uvloop, service.http.server, service.http.app'


FROM ${BASE}

ARG VERSION=0.3.0
LABEL org.opencontainers.image.title="walltimed" \
    org.opencontainers.image.description="Online walltime prediction for HPC batch schedulers" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.licenses="Apache-2.0"

RUN groupadd --gid 10001 walltimed \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/walltimed \
        --shell /usr/sbin/nologin --no-log-init walltimed \
    && install --directory --owner=walltimed --group=walltimed /var/lib/walltimed /var/cache/walltimed
COPY --from=build /opt/walltimed /opt/walltimed

# Beyond loopback the service starts only once a token has been issued.
ENV PATH=/opt/walltimed/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/var/cache/walltimed \
    WALLTIMED_HOST=0.0.0.0 \
    WALLTIMED_DATABASE_URL=sqlite:////var/lib/walltimed/walltimed.sqlite3

USER 10001:10001
WORKDIR /var/lib/walltimed
# The history, and machine code that the image does not hold.
VOLUME ["/var/lib/walltimed", "/var/cache/walltimed"]
EXPOSE 8580

# Without the HTTP client of Python, which takes longer to load than the answer to come.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["python", "-I", "-S", "-c", \
    "import os, socket; s = socket.create_connection(('127.0.0.1', int(os.environ.get('WALLTIMED_PORT', '8580'))), 2); s.sendall(b'GET /health/ready HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n'); raise SystemExit(b' 200 ' not in s.recv(64))"]

ENTRYPOINT ["walltimed"]
CMD ["serve"]
