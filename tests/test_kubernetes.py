"""The manifests for Kubernetes, each part held against what it names: here, and in the service."""

import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from fastapi import APIRouter
from typer.main import get_command

from service.cli import app
from service.http import report_calls
from service.http.openapi import Calls
from service.http.server import GRACE_SECONDS
from service.settings import Settings

ROOT = Path(__file__).parents[1]
KUBERNETES = ROOT / "deploy" / "kubernetes"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))
NOBODY = 10001
OTHER_VARIABLES = {"NUMBA_CACHE_DIR"}


def manifests(*names: str) -> list[dict]:
    return [
        manifest
        for name in names
        for manifest in yaml.safe_load_all((KUBERNETES / name).read_text("utf-8"))
    ]


APPLIED = manifests(*KUSTOMIZATION["resources"])
SECRET, OPERATOR = manifests("secret.example.yaml", "operator.yaml")


def of_kind(kind: str) -> list[dict]:
    return [manifest for manifest in APPLIED if manifest["kind"] == kind]


(DEPLOYMENT,), (JOB,) = of_kind("Deployment"), of_kind("Job")
WORKER = DEPLOYMENT["spec"]["template"]
PODS = {
    "worker": WORKER["spec"],
    "migration": JOB["spec"]["template"]["spec"],
    "operator": OPERATOR["spec"],
}
(CONTAINER,) = WORKER["spec"]["containers"]

every_pod = pytest.mark.parametrize("pod", PODS.values(), ids=PODS)


def settings_named(pod: dict) -> Iterator[tuple[str, dict]]:
    """The settings that a pod's environment names, with their entries."""
    for entry in pod["containers"][0]["env"]:
        if entry["name"] not in OTHER_VARIABLES:
            assert entry["name"].startswith("WALLTIMED_")
            yield entry["name"].removeprefix("WALLTIMED_").lower(), entry


def setting(name: str) -> str:
    return dict(settings_named(WORKER["spec"]))[name]["value"]


def test_every_file_is_applied_or_said_not_to_be():
    named = {*KUSTOMIZATION["resources"], "kustomization.yaml", "walltimed.toml"}
    assert {path.name for path in KUBERNETES.iterdir()} == named | {
        "secret.example.yaml",
        "operator.yaml",
    }


def test_everything_lies_in_the_namespace_that_is_made():
    (namespace,) = of_kind("Namespace")
    name = namespace["metadata"]["name"]
    assert KUSTOMIZATION["namespace"] == name
    assert {each["metadata"]["namespace"] for each in (SECRET, OPERATOR)} == {name}


def test_selectors_choose_the_workers_and_no_other_pod():
    labels = WORKER["metadata"]["labels"]
    selectors = [service["spec"]["selector"] for service in of_kind("Service")]
    selectors += [
        each["spec"]["selector"]["matchLabels"]
        for each in (DEPLOYMENT, *of_kind("PodDisruptionBudget"))
    ]
    (spread,) = WORKER["spec"]["topologySpreadConstraints"]
    others = [JOB["spec"]["template"]["metadata"]["labels"], OPERATOR["metadata"]["labels"]]
    for selector in (*selectors, spread["labelSelector"]["matchLabels"]):
        assert selector.items() <= labels.items()
        assert not any(selector.items() <= other.items() for other in others)


def test_services_lead_to_the_port_that_is_listened_on():
    (port,) = CONTAINER["ports"]
    assert port["containerPort"] == Settings().port
    for service in of_kind("Service"):
        (entry,) = service["spec"]["ports"]
        assert entry["targetPort"] == port["name"]
    assert not Settings(host=setting("host")).is_loopback


def test_probes_ask_calls_that_need_no_token():
    calls = Calls(APIRouter())
    report_calls.add_health(calls, showing=None, health=None)
    open_paths = {call.route.path for call in calls.declared if call.scopes is None}
    ready, live = "/health/ready", "/health/live"
    expected = {"startupProbe": ready, "readinessProbe": ready, "livenessProbe": live}
    assert set(expected.values()) <= open_paths
    for probe, path in expected.items():
        asked = CONTAINER[probe]["httpGet"]
        assert asked == {"path": path, "port": CONTAINER["ports"][0]["name"]}


@every_pod
def test_the_environment_names_settings_that_there_are(pod):
    for name, entry in settings_named(pod):
        assert name in Settings.model_fields
        if "value" in entry and name != "config":
            Settings(**{name: entry["value"]})


@every_pod
def test_kubernetes_adds_no_variable_that_looks_like_a_setting(pod):
    assert "port" in Settings.model_fields  # what it adds for a Service is WALLTIMED_PORT=tcp://…
    assert pod["enableServiceLinks"] is False


@every_pod
def test_the_address_of_the_database_comes_from_the_secret_only(pod):
    (source,) = [e["valueFrom"] for name, e in settings_named(pod) if name == "database_url"]
    reference = source["secretKeyRef"]
    assert reference["name"] == SECRET["metadata"]["name"]
    url = SECRET["stringData"][reference["key"]]
    assert url.startswith("postgresql+psycopg://")
    assert "secret.example.yaml" not in KUSTOMIZATION["resources"]


def test_the_settings_file_is_where_the_workers_look_for_it():
    (made,) = KUSTOMIZATION["configMapGenerator"]
    (volume,) = [v for v in WORKER["spec"]["volumes"] if "configMap" in v]
    (mount,) = [m for m in CONTAINER["volumeMounts"] if m["name"] == volume["name"]]
    (file,) = made["files"]
    assert volume["configMap"]["name"] == made["name"]
    assert setting("config") == f"{mount['mountPath']}/{file}"
    text = (KUBERNETES / file).read_text("utf-8")
    assert tomllib.loads(text) == {}
    suggested = text.split("\n\n")[1].replace("# ", "")
    assert Settings(**tomllib.loads(suggested))


@every_pod
def test_pods_run_as_nobody_on_a_root_that_is_read_only(pod):
    context, (container,) = pod["securityContext"], pod["containers"]
    assert f"--uid {NOBODY}" in DOCKERFILE
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == context["runAsGroup"] == context["fsGroup"] == NOBODY
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


@every_pod
def test_what_is_written_goes_to_volumes_that_end_with_the_pod(pod):
    written = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
    mounts = {m["mountPath"]: m["name"] for m in pod["containers"][0]["volumeMounts"]}
    for path in ("/tmp", "/var/cache/walltimed"):
        assert mounts[path] in written
    assert set(mounts.values()) == {volume["name"] for volume in pod["volumes"]}
    assert "NUMBA_CACHE_DIR=/var/cache/walltimed" in DOCKERFILE


@pytest.mark.parametrize("name", ["worker", "migration"])
def test_pods_run_commands_that_there_are(name):
    command = get_command(app)
    for word in PODS[name]["containers"][0]["args"]:
        if commands := getattr(command, "commands", None):
            command = commands[word]
        elif word.startswith("-"):
            assert word in {option for each in command.params for option in each.opts}
    assert 'ENTRYPOINT ["walltimed"]' in DOCKERFILE


def test_a_worker_leaves_only_when_another_is_ready_and_has_time_to_write():
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"]["maxSurge"] > 0
    command, seconds = CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    grace = WORKER["spec"]["terminationGracePeriodSeconds"]
    assert grace >= 2 * (int(seconds) + GRACE_SECONDS)
    (budget,) = of_kind("PodDisruptionBudget")
    assert 0 < budget["spec"]["minAvailable"] < DEPLOYMENT["spec"]["replicas"]


def test_the_image_is_named_in_one_place_and_once_more_for_the_operator():
    (image,) = KUSTOMIZATION["images"]
    assert {PODS[name]["containers"][0]["image"] for name in ("worker", "migration")} == {
        image["name"]
    }
    named = f"{image['newName']}:{image['newTag']}"
    assert OPERATOR["spec"]["containers"][0]["image"] == named
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert image["newTag"] == version


def test_prometheus_asks_the_service_that_stands_for_each_pod():
    scrape = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
    (found,) = [sd for job in scrape["scrape_configs"] for sd in job.get("dns_sd_configs", ())]
    (headless,) = [s for s in of_kind("Service") if s["spec"].get("clusterIP") == "None"]
    name = f"{headless['metadata']['name']}.{KUSTOMIZATION['namespace']}.svc"
    assert found["names"] == [name]
    assert found["port"] == Settings().port


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl, which reads kustomize")
def test_kustomize_makes_the_manifests():
    done = subprocess.run(
        ["kubectl", "kustomize", KUBERNETES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert sorted(each["kind"] for each in made) == sorted(
        [each["kind"] for each in APPLIED] + ["ConfigMap"]
    )
    (settings,) = [each["metadata"]["name"] for each in made if each["kind"] == "ConfigMap"]
    (worker,) = [each for each in made if each["kind"] == "Deployment"]
    pod = worker["spec"]["template"]["spec"]
    assert settings in [v.get("configMap", {}).get("name") for v in pod["volumes"]]
    assert settings.startswith("walltimed-settings-")
    assert pod["containers"][0]["image"].startswith("registry.example/walltimed:")


RELEASES = ("1.28", "1.37")
"""Of Kubernetes: an old one that sites still run, and the newest whose schemas we have."""

FILES = [path.name for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml"]


@pytest.fixture(scope="module")
def published():
    """Checks a manifest against the published schemas; a field that they do not have is refused."""
    return lambda manifest, release: kubernetes_validate.validate(manifest, release, strict=True)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("file", FILES)
def test_every_manifest_is_what_the_published_schemas_say(published, file, release):
    for manifest in manifests(file):
        published(manifest, release)
