#!/bin/bash
# What Spark on Kubernetes starts in a pod: `driver ARGUMENTS` or `executor`, as Spark's own /opt/entrypoint.sh
# understands them; any other words are a command, which is run as it is.
set -euo pipefail

# The kernels of the image are for CPUs of this level. One that lacks any of its instructions compiles its own.
if [ "${NUMBA_CPU_NAME:-}" = x86-64-v3 ]; then
  for flag in avx2 bmi1 bmi2 f16c fma abm movbe; do
    if ! grep -qw "$flag" "${NDDUP_CPUINFO:-/proc/cpuinfo}"; then
      unset NUMBA_CPU_NAME NUMBA_CPU_FEATURES
      break
    fi
  done
fi

classes="${SPARK_CLASSPATH:-}:${SPARK_HOME:-}/jars/*"
[ -z "${SPARK_EXTRA_CLASSPATH:-}" ] || classes="${classes}:${SPARK_EXTRA_CLASSPATH}"
[ -z "${HADOOP_CONF_DIR:-}" ] || classes="${HADOOP_CONF_DIR}:${classes}"
[ -z "${SPARK_CONF_DIR:-}" ] || classes="${SPARK_CONF_DIR}:${classes}"
java="${JAVA_HOME:+${JAVA_HOME}/bin/}java"

case "${1:-}" in
  driver)
    shift
    exec "${SPARK_HOME}/bin/spark-submit" \
      --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS}" \
      --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=${SPARK_DRIVER_BIND_ADDRESS}" \
      --deploy-mode client "$@"
    ;;
  executor)
    # SPARK_JAVA_OPT_0, _1 …: options of the executor's Java, in the order of their numbers.
    options=()
    for name in $(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4 -n); do options+=("${!name}"); done
    exec "$java" ${options[@]+"${options[@]}"} "-Xms${SPARK_EXECUTOR_MEMORY}" "-Xmx${SPARK_EXECUTOR_MEMORY}" \
      -cp "${classes}:${SPARK_DIST_CLASSPATH:-}" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "${SPARK_DRIVER_URL}" --executor-id "${SPARK_EXECUTOR_ID}" --cores "${SPARK_EXECUTOR_CORES}" \
      --app-id "${SPARK_APPLICATION_ID}" --hostname "${SPARK_EXECUTOR_POD_IP}" \
      --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID}" --podName "${SPARK_EXECUTOR_POD_NAME}"
    ;;
  *)
    exec "$@"
    ;;
esac
