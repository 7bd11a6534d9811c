"""docker-compose.yml and Dockerfile are valid, complete and pinned, open to this machine only, and hold no secret."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.places import ROOT

COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
VARIABLE = re.compile(r"\$\{(\w+)([^}]*)\}")
SECRET = re.compile(r"KEY|SECRET|PASSWORD|TOKEN", re.IGNORECASE)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The parsed compose file, with anchors resolved."""
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return loaded


@pytest.mark.parametrize(
    "command",
    [
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        ["hadolint", "Dockerfile"],
    ],
    ids=["compose specification", "hadolint"],
)
def test_the_validators_pass(command: list[str]) -> None:
    """Both files pass the validator of their format."""
    program = Path(sys.executable).with_name(command[0])

    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_referred_to_is_there(compose: dict[str, Any]) -> None:
    """Every dependency, volume, config, build target and awaited health check that a service names exists."""
    services = compose["services"]
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE))
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        named = {volume.split(":")[0] for volume in service.get("volumes", []) if ":" in volume}
        assert named <= set(compose["volumes"])
        assert {config["source"] for config in service.get("configs", [])} <= set(compose["configs"])
        assert service.get("build", {"target": "nddup"})["target"] in stages
        for name, needed in service.get("depends_on", {}).items():
            assert needed["condition"] != "service_healthy" or "healthcheck" in services[name]
    assert set(services) == {"master", "worker", "history", "store", "airflow"}


def test_what_the_dag_is_told_reaches_it(compose: dict[str, Any]) -> None:
    """Each variable of docs/operations.md that says what runs when; a name in .env alone would have no effect."""
    read = set(re.findall(r'environ.get\("(NDDUP_\w+)"', (ROOT / "jobs" / "dags" / "nddup_daily.py").read_text()))
    of_the_image = {"NDDUP_HOME", "NDDUP_SPARK_CONNECTION"}
    assert read - of_the_image <= set(compose["services"]["airflow"]["environment"])


def test_what_the_image_copies_is_there_and_sent() -> None:
    """Every file that the image copies exists, and .dockerignore admits exactly these."""
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    copied = {
        name
        for line in re.findall(r"^COPY (?:--chown=\S+ )?([^-].*) \S+$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    }

    assert copied
    assert copied == sent
    assert all((ROOT / name).exists() for name in copied)


def test_images_and_packages_are_pinned(compose: dict[str, Any]) -> None:
    """Every image has a full version, and every package is installed from a lock file with hashes."""
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    images = [service["image"] for service in compose["services"].values()]
    ours = {"nddup", "${ENGINES}", *re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE)}

    assert all(re.search(r":\d+\.\d+(\.\d+)?(-\S+)?$", image) for image in {*bases, *images} - ours)
    for line in re.findall(r"pip install .*", DOCKERFILE):
        assert "--require-hashes -r" in line or "--no-deps --no-build-isolation -e ." in line


def test_the_version_of_the_image_is_that_of_the_package(compose: dict[str, Any]) -> None:
    """The tag of an image that is built here is the version of the package."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)

    assert version is not None
    for service in compose["services"].values():
        if "build" in service:
            assert service["image"].endswith(f":{version[1]}")


def test_our_images_run_as_no_root_and_write_to_volumes_alone(compose: dict[str, Any]) -> None:
    """The last user of each stage is none of root's; the root file system is read-only, and nothing is gained later."""
    for stage in re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]:
        assert re.findall(r"^USER (\d+)$", stage, re.MULTILINE)[-1] == "10001"
    assert re.search(r"^HEALTHCHECK .*CMD \[", DOCKERFILE, re.MULTILINE)
    for name, service in compose["services"].items():
        if name != "store":
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert "/tmp" in service["volumes"], name  # noqa: S108
            assert service["environment"]["NDDUP_CACHE_DIR"].startswith("/tmp/"), name  # noqa: S108


def test_kernels_are_compiled_for_a_level_of_cpus(compose: dict[str, Any]) -> None:
    """The level is set before they are compiled, and the features of the machine that builds are left out."""
    level, setup = (
        DOCKERFILE.index('ENV NUMBA_CPU_NAME=$CPU_NAME NUMBA_CPU_FEATURES=""'),
        DOCKERFILE.index("nddup setup"),
    )
    assert level < setup
    assert "ARG CPU_NAME=x86-64-v3" in DOCKERFILE[:level]
    assert all("entrypoint" not in service for name, service in compose["services"].items() if name != "store")


def test_ports_are_open_to_this_machine_only(compose: dict[str, Any]) -> None:
    """By default every published port is bound to the loopback address, and no two are the same."""
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]

    assert published
    assert all(port.startswith("${NDDUP_BIND:-127.0.0.1}:") for port in published)
    assert len({port.split("}:")[1].split(":")[0] for port in published}) == len(published)


def test_there_is_no_default_secret(compose: dict[str, Any]) -> None:
    """A secret has no value and no default in the compose file, and an empty value in .env.example."""
    example = dict(
        line.split("=", 1) for line in (ROOT / ".env.example").read_text().splitlines() if not line.startswith("#")
    )
    found = dict(VARIABLE.findall(COMPOSE.read_text()))
    secret = {name for name in found if SECRET.search(name)}

    assert set(example) == secret
    assert set(example.values()) == {""}
    assert all(found[name].startswith(":?") for name in secret)
    assert all(found[name].startswith((":?", ":-")) for name in found)
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not SECRET.search(name) or VARIABLE.fullmatch(str(value))


def test_services_are_bounded_and_watched(compose: dict[str, Any]) -> None:
    """Each service has a memory limit, a health check and rotated output; event logs are rotated and removed."""
    for name, service in compose["services"].items():
        assert re.fullmatch(r"\$\{[A-Z]+_LIMIT:-\d+g\}", service["mem_limit"]), name
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name
    history = compose["services"]["history"]["environment"]["SPARK_HISTORY_OPTS"]
    assert "spark.history.fs.cleaner.enabled=true" in history
    settings = (ROOT / "conf" / "compose" / "spark-defaults.conf").read_text()
    assert re.search(r"^spark\.eventLog\.rolling\.enabled +true$", settings, re.MULTILINE)
