# Two stages: the first installs what requirements/ pins by hash, the second only carries it.
FROM python:3.11-slim AS build

RUN python -m venv /opt/walltimed
COPY requirements/build.txt requirements/runtime.txt /build/requirements/
RUN /opt/walltimed/bin/pip install --no-cache-dir --require-hashes \
        -r /build/requirements/build.txt -r /build/requirements/runtime.txt
COPY pyproject.toml README.md LICENSE /build/
COPY predictors /build/predictors
COPY simulator /build/simulator
COPY service /build/service
COPY migrations /build/migrations
RUN /opt/walltimed/bin/pip install --no-cache-dir --no-deps --no-build-isolation /build


FROM python:3.11-slim

RUN useradd --system --uid 10001 --home-dir /var/lib/walltimed --create-home walltimed \
    && install --directory --owner=walltimed /var/cache/walltimed
COPY --from=build /opt/walltimed /opt/walltimed

# Beyond loopback the service starts only once a token has been issued.
ENV PATH=/opt/walltimed/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/cache/walltimed \
    WALLTIMED_HOST=0.0.0.0 \
    WALLTIMED_DATABASE_URL=sqlite:////var/lib/walltimed/walltimed.sqlite3

USER walltimed
# Compiled here, once; not by every container.
RUN walltimed warm-up
WORKDIR /var/lib/walltimed
VOLUME /var/lib/walltimed
EXPOSE 8580

HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["python", "-c", \
    "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('WALLTIMED_PORT', '8580') + '/health/ready', timeout=2)"]

ENTRYPOINT ["walltimed"]
CMD ["serve"]
