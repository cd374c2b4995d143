"""The Kubernetes manifests match Kubernetes' schema, as files and as kustomize combines them."""

import shutil
import tempfile
from pathlib import Path

from servers.commands import output
from tools import DEPLOY, WORK, python_program, rejected

FOLDER = DEPLOY / "kubernetes"
FILES = [FOLDER / "daemonset.yaml", FOLDER / "namespace.yaml"]
COMPONENTS = sorted(path.name for path in (FOLDER / "components").iterdir())


def validate(*files):
    return [python_program("kubernetes-validate"), "--strict", "--quiet", *files]


def check():
    output(validate(*FILES))
    for path in ("securityContext", "livenessProbe", "resources"):
        yield from a_mistake_is_found(path)


def a_mistake_is_found(word):
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        wrong = Path(folder) / "daemonset.yaml"
        wrong.write_text((FOLDER / "daemonset.yaml").read_text().replace(f"{word}:", f"{word}s:"))
        yield from rejected(f"misspelled {word}", validate(wrong), f"{word}s")


def check_kustomize():
    """The base, and the base with each component."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        copy = Path(folder) / "kubernetes"
        shutil.copytree(FOLDER, copy)
        base = (copy / "kustomization.yaml").read_text()
        combined = {name: combine(copy, base + f"\ncomponents:\n  - components/{name}\n") for name in COMPONENTS}
        plain = combine(copy, base)
        for name, text in {"base": plain, **combined}.items():
            rendered = Path(folder) / f"{name}.yaml"
            # The schemas contain no resources of the Prometheus Operator.
            known = [part for part in text.split("\n---\n") if "monitoring.coreos.com" not in part]
            rendered.write_text("\n---\n".join(known))
            output(validate(rendered))
            if "image: registry.example.com/pg_timing:latest" not in text:
                yield f"{name}: kustomize does not replace the image"
            if text == plain and name != "base":
                yield f"{name} changes nothing"
            if ("kubernetes.io/arch: amd64" in text) == (name == "arm64"):
                yield f"{name} is for the wrong architectures"


def combine(folder, kustomization):
    (folder / "kustomization.yaml").write_text(kustomization)
    return output(["kubectl", "kustomize", folder])
