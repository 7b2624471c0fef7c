# OpenAssay with workers, PostgreSQL and traces. docs/howto/deploy.md says how to build it behind a package mirror and how to run it.

ARG BASE=python:3.11-slim

# A mirror comes as PIP_INDEX_URL, or, where it wants a password, as a pip.conf in the secret `pip`: neither is in the image.
FROM ${BASE} AS build
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python -m venv --without-pip /opt/openassay
COPY requirements/bootstrap.lock requirements/fleet.lock requirements/
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    pip install --quiet --no-deps --only-binary :all: --require-hashes -r requirements/bootstrap.lock \
    && pip --python /opt/openassay install --quiet --no-deps --only-binary :all: --require-hashes -r requirements/fleet.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/openassay install --quiet --no-deps --no-index dist/*.whl

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="OpenAssay" \
      org.opencontainers.image.description="A deep-research assistant whose every sentence opens the passage that supports it." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# A number, so that whoever checks for it sees a user who is not root; it owns the one folder that is written to.
RUN groupadd --gid 10001 openassay \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin openassay \
    && install -d -o 10001 -g 10001 -m 0700 /data
COPY --from=build /opt/openassay /opt/openassay
# onnxruntime would keep a device id and a queue of reports to its vendor in HOME.
ENV PATH=/opt/openassay/bin:$PATH HOME=/data OPENASSAY_DATA_DIR=/data ORT_DISABLE_TELEMETRY=1 \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8765
# Not urllib, which would go through a proxy of the environment.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-c", "\
import http.client, os; \
asked = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('OPENASSAY_SERVER__PORT', 8765)), timeout=4); \
asked.request('GET', '/healthz'); \
raise SystemExit(asked.getresponse().status != 200)"]
ENTRYPOINT ["openassay"]
CMD ["serve"]
