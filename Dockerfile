# The images of docker-compose.yml, from the locks: `nddup` is Spark with nddup on it, `airflow` adds the scheduler.
# For files alone, half as large: docker build --target nddup --build-arg ENGINES=embedded
ARG ENGINES=spark

# Of Java only the modules that Spark asks for, a fifth of its packages.
FROM python:3.11.13-slim-bookworm AS java
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jdk-headless \
    && jlink --strip-java-debug-attributes --no-man-pages --no-header-files --compress=2 --include-locales=en \
        --output /opt/java --add-modules java.se,jdk.charsets,jdk.crypto.ec,jdk.httpserver,jdk.incubator.vector,jdk.localedata,jdk.management,jdk.naming.dns,jdk.security.auth,jdk.security.jgss,jdk.unsupported,jdk.zipfs \
    && /opt/java/bin/java -Xshare:dump
USER 10001

FROM python:3.11.13-slim-bookworm AS embedded
ENV PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 LC_ALL=C.UTF-8
RUN useradd --create-home --uid 10001 nddup \
    && install -d -o nddup -g nddup /opt/nddup /opt/venv /data /events
USER 10001
WORKDIR /opt/nddup
RUN python -m venv /opt/venv
COPY --chown=nddup requirements.lock ./
# Spark comes in a layer of its own; nobody runs the tests of libraries here.
RUN awk '/^[^ ]/ { spark = /^(pyspark|py4j)==/ } { print > (spark ? "spark.lock" : "libraries.lock") }' requirements.lock \
    && /opt/venv/bin/pip install --no-deps --require-hashes -r libraries.lock \
    && find /opt/venv -type d \( -name tests -o -name test \) -prune -exec rm -r {} +

FROM embedded AS spark
USER 0
# Spark's scripts use procps to look for their daemons.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends procps \
    && rm -rf /var/lib/apt/lists/*
USER 10001
COPY --from=java /opt/java /opt/java
RUN /opt/venv/bin/pip install --no-deps --require-hashes -r spark.lock
ENV JAVA_HOME=/opt/java \
    SPARK_HOME=/opt/venv/lib/python3.11/site-packages/pyspark \
    SPARK_CONF_DIR=/opt/nddup/conf/compose \
    SPARK_NO_DAEMONIZE=1 \
    PYSPARK_PYTHON=/opt/venv/bin/python \
    PYSPARK_DRIVER_PYTHON=/opt/venv/bin/python

# hadolint ignore=DL3006
FROM ${ENGINES} AS nddup
USER 10001
WORKDIR /opt/nddup
COPY --chown=nddup pyproject.toml README.md LICENSE ./
COPY --chown=nddup nddup ./nddup
# Kernels are compiled for this level, so that any such CPU finds them; the entry point lets an older one compile its own.
# For another architecture: --build-arg CPU_NAME=generic.
ARG CPU_NAME=x86-64-v3
ENV NUMBA_CPU_NAME=$CPU_NAME NUMBA_CPU_FEATURES=""
# Editable, so not copied into the environment: jobs, DAG and package stay together, and kernels beside their sources.
RUN /opt/venv/bin/pip install --no-deps --no-build-isolation -e . \
    && /opt/venv/bin/nddup setup
COPY --chown=nddup conf ./conf
COPY --chown=nddup jobs ./jobs
# Spark on Kubernetes starts its pods with `driver …` and `executor`; other words are a command. Kernels are compiled: a
# pod with another uid, or a read-only root, reads them. NUMBA_CACHE_DIR names a folder for others.
COPY scripts/entrypoint.sh /opt/entrypoint.sh
ENTRYPOINT ["/opt/entrypoint.sh"]

ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin
HEALTHCHECK --interval=1m --timeout=20s --retries=3 CMD ["nddup", "--version"]
CMD ["nddup", "--help"]

# Airflow's Spark provider brings its own pyspark, so Airflow has an environment of its own, first on the PATH.
FROM nddup AS airflow
USER 0
RUN install -d -o nddup -g nddup /opt/airflow /opt/airflow-venv
USER 10001
COPY --chown=nddup airflow-requirements.lock ./
RUN python3 -m venv /opt/airflow-venv \
    && /opt/airflow-venv/bin/pip install --no-deps --require-hashes -r airflow-requirements.lock
ENV AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/nddup/jobs/dags \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=False \
    PATH=/opt/airflow-venv/bin:/opt/venv/bin:/usr/local/bin:/usr/bin:/bin
CMD ["airflow", "standalone"]
