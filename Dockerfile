# Feedmill's image: every service is a command of it (`docker run feedmill:TAG scheduler`).
#
#   docker build -t feedmill:dev .
#   docker build --target enricher -t feedmill-enricher:dev .                  # with the packages of the enricher
#   docker build --target enricher-models -t feedmill-enricher-models:dev .    # with spaCy and its models, too
#   docker build --build-arg PYTHON_IMAGE=registry.example/python:3.13-slim -t feedmill:dev .    # another base
#
# Two builds of one commit on one base give the same layers: exact versions with their hashes, no time stamps in what is
# compiled, one date on every file.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
# The date that files get (seconds since 1970): `--build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)`, or this one.
ARG SOURCE_DATE_EPOCH=1767225600
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
WORKDIR /source

# What the image runs on, first: it changes seldom. Wheels only, so that nothing is compiled here.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/feedmill \
 && python -m venv /opt/tools \
 && /opt/tools/bin/pip install --quiet --require-hashes --only-binary :all: --requirement requirements-build.lock \
 && /opt/tools/bin/pip --python /opt/feedmill/bin/python install --quiet --no-compile \
      --require-hashes --only-binary :all: --requirement requirements.lock

COPY pyproject.toml README.md LICENSE scripts/stage_image.sh ./
COPY shared shared
COPY services services
COPY local local
COPY feedmill_client feedmill_client
# RECORD lists what was installed; pip's own notes beside it (direct_url.json) name this directory and its time.
RUN /opt/tools/bin/hatchling build --target wheel --directory /tmp/wheel >/dev/null \
 && /opt/tools/bin/pip --python /opt/feedmill/bin/python install --quiet --no-compile --no-deps --no-index /tmp/wheel/*.whl \
 && rm -f /opt/feedmill/lib/python3.*/site-packages/feedmill-*.dist-info/direct_url.json \
 && /source/stage_image.sh /stage

# Each image has all of the one before, and a layer with what is new.
FROM build AS build-enricher
COPY requirements-enrich.lock ./
RUN /opt/tools/bin/pip --python /opt/feedmill/bin/python install --quiet --no-compile \
      --require-hashes --only-binary :all: --requirement requirements-enrich.lock \
 && /source/stage_image.sh /stage-enricher /stage

FROM build-enricher AS build-models
COPY requirements-entities.lock ./
RUN /opt/tools/bin/pip --python /opt/feedmill/bin/python install --quiet --no-compile \
      --require-hashes --only-binary :all: --requirement requirements-entities.lock \
 && /source/stage_image.sh /stage-models /stage /stage-enricher

FROM ${PYTHON_IMAGE} AS run
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Feedmill" \
      org.opencontainers.image.description="Polls feeds politely and at scale into one deduplicated PostgreSQL table" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# With its parent: a directory that COPY has to make gets the date of the build.
COPY --from=build /stage/ /
# In a container the port is known and seen from outside of it; which addresses reach it, the engine decides.
ENV PATH=/opt/feedmill/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    FEEDMILL_METRICS_HOST=0.0.0.0 \
    FEEDMILL_METRICS_PORT=8000
# A number and no name: Kubernetes can tell that it isn't root's. It owns nothing here, and writes only to /tmp.
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000 8080
# The services answer; commands that come to an end (migrate, batch, feeds …) end before it matters.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD python -m services.cli.health "$FEEDMILL_METRICS_PORT"
ENTRYPOINT ["feedmill"]
CMD ["--help"]

FROM run AS enricher
COPY --from=build-enricher /stage-enricher/ /
# Its arrays are small: threads of OpenBLAS would only take memory and other services' cores.
ENV OMP_NUM_THREADS=1

FROM enricher AS enricher-models
COPY --from=build-models /stage-models/ /

# The last one is what is built if none is named.
FROM run AS image
