"""Archives with the same bytes on each machine: sorted names, one time for all files, no owner, two kinds of permissions."""

import gzip
import tarfile
import time
import zipfile


def members(folder, above, folders=False):
    """Returns the files below a folder, sorted, and their names in the archive: relative to the folder `above`.

    Folders also have entries, if `folders`.
    """
    # A link to a folder is a file.
    files = (file for file in sorted(folder.rglob("*")) if folders or file.is_symlink() or not file.is_dir())
    return [(file, str(file.relative_to(above))) for file in files]


def mode(file):
    """Returns the permissions in the archive. They do not depend on the umask."""
    return 0o755 if file.stat().st_mode & 0o100 else 0o644


def tar_gz(folder, archive, date, is_layer=False):
    """Writes a folder into a compressed archive. A symbolic link stays a link. Names begin with the folder's.

    A layer of an image has names without it. Some engines give missing folders permissions that shut others out.
    """
    above = folder if is_layer else folder.parent

    def entry(file, name):
        info = tarfile.TarInfo(name)
        info.mtime = date
        if file.is_symlink():
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(file.readlink()), 0o777
        elif file.is_dir():
            info.type, info.mode = tarfile.DIRTYPE, 0o755
        else:
            info.size, info.mode = file.stat().st_size, mode(file)
        return info

    # gzip would store the file's name and the time.
    with archive.open("wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=date) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for file, name in members(folder, above, is_layer):
                info = entry(file, name)
                if not info.isreg():
                    tar.addfile(info)
                else:
                    with file.open("rb") as content:
                        tar.addfile(info, content)


def zipped(folder, archive, date):
    """Writes a folder into a zip file."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for file, name in members(folder, folder.parent):
            info = zipfile.ZipInfo(name, time.gmtime(date)[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            # The system is Unix, so that the permissions count.
            info.create_system, info.external_attr = 3, (0o100000 | mode(file)) << 16
            out.writestr(info, file.read_bytes())
