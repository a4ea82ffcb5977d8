#!/bin/sh
# Builds walltimed_<version>_<architecture>.deb: the service with all it needs in a virtual
# environment of its own under /opt/walltimed, so that the site needs no internet.
#
#     deploy/build-deb.sh [OUTPUT-DIRECTORY]
#
# Build it on the distribution it is for: it uses that one's python3 (3.11 or newer).
set -eu
cd "$(dirname "$0")/.."
output=$(realpath "${1:-.}")
python=${PYTHON:-/usr/bin/python3}
version=$("$python" -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
architecture=$(dpkg --print-architecture)
requires=$("$python" -c 'import sys; print("python3 (>= 3.%d), python3 (<< 3.%d)" % (sys.version_info[1], sys.version_info[1] + 1))')
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
root=$build/root

"$python" -m venv --copies "$root/opt/walltimed"
pip() { "$root/opt/walltimed/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
# With the genetic search and pages; PyTorch, which only learning anew needs, is left out.
pip install --no-compile --require-hashes -r requirements/build.txt -r requirements/full.txt
# From a copy: setuptools leaves its build directory beside what it builds.
mkdir "$build/source"
cp -r pyproject.toml README.md LICENSE predictors simulator service migrations "$build/source"
pip install --no-compile --no-deps --no-build-isolation "$build/source"
"$root/opt/walltimed/bin/python" deploy/manual.py "$root/usr"
pip uninstall --yes setuptools pip
find "$root/opt/walltimed" -name tests -type d -prune -exec rm -rf {} +
find "$root/opt/walltimed" -name '*.a' -type f -delete
# Scripts name the interpreter they were installed with: not the directory of this build.
grep -rlI "$root" "$root/opt/walltimed/bin" "$root/opt/walltimed/pyvenv.cfg" |
    xargs --no-run-if-empty sed -i "s|$root||g"
# Bytecode comes along: the service may not write beside its modules, and dpkg removes it again.
find "$root/opt/walltimed" -name __pycache__ -type d -prune -exec rm -rf {} +
"$python" -m compileall -q -s "$root" "$root/opt/walltimed/lib"

install -d "$root/usr/bin" "$root/lib/systemd/system" "$root/etc/walltimed" \
    "$root/usr/share/walltimed" "$root/usr/share/doc/walltimed" "$root/DEBIAN"
ln -s /opt/walltimed/bin/walltimed "$root/usr/bin/walltimed"
install -m 644 deploy/systemd/* "$root/lib/systemd/system"
install -m 640 deploy/etc/walltimed.toml "$root/etc/walltimed"
cp -r integrations/slurm integrations/pbs "$root/usr/share/walltimed"
mv "$root/usr/share/walltimed/pbs/walltimed_hook.json" "$root/etc/walltimed/pbs-hook.json"
install -m 644 docs/slurm.md docs/pbs.md docs/queue.md docs/deployment.md docs/operations.md LICENSE "$root/usr/share/doc/walltimed"
# What a site edits: dpkg asks before it replaces it.
printf '%s\n' /etc/walltimed/walltimed.toml /etc/walltimed/pbs-hook.json > "$root/DEBIAN/conffiles"
cat > "$root/DEBIAN/control" <<CONTROL
Package: walltimed
Version: $version
Architecture: $architecture
Maintainer: walltimed maintainers <walltimed@localhost>
Depends: $requires, adduser
Recommends: lua-socket
Section: admin
Priority: optional
Description: walltime predictions for HPC batch schedulers
 Predicts at every submission how long a job will really run, from how long
 earlier jobs ran, and shows how accurate it is. For Slurm and PBS.
CONTROL
install -m 755 deploy/postinst deploy/prerm deploy/postrm "$root/DEBIAN"

dpkg-deb -Zxz -z2 --root-owner-group --build "$root" "$output/walltimed_${version}_$architecture.deb"
