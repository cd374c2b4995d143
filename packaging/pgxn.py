"""The archive of the extension for PGXN, the PostgreSQL Extension Network."""

import json
import shutil

import archive
import commit


def build():
    """Returns the path of the archive: the folder extension/ with META.json, in which the version is written."""
    version = commit.version()
    work = commit.TARGET / "pgxn"
    commit.export(work / "source", "extension", "packaging/pgxn", "LICENSE")
    folder = work / f"pg_fast_timing-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(work / "source/extension", folder)
    shutil.copy(work / "source/LICENSE", folder)
    meta = json.loads((work / "source/packaging/pgxn/META.json").read_text())
    meta["version"] = version
    for extension in meta["provides"].values():
        extension["version"] = version
    (folder / "META.json").write_text(json.dumps(meta, indent=3, ensure_ascii=False) + "\n")
    commit.remove_old(work, "*.zip")
    target = work / f"{folder.name}.zip"
    archive.zipped(folder, target, commit.date())
    return [target]
