#!/bin/sh
# Makes the tree of files that the packages of the service hold: walltimed with all it needs in a
# virtual environment under /opt/walltimed, its machine code included, so that the site needs no
# internet and nothing is compiled there.
#
#     deploy/build-tree.sh DIRECTORY
#
# REQUIREMENTS=full adds what pages with pictures and the genetic search need.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
root=$(realpath "$1")
# With its version in its name: python3 is another one on EL.
python=$(realpath "${PYTHON:-/usr/bin/python3}")

# A link to the distribution's interpreter, which it keeps secure.
"$python" -m venv --symlinks "$root/opt/walltimed"
installed=$root/opt/walltimed/bin/python
pip() { "$installed" -m pip --quiet --disable-pip-version-check "$@"; }
pip install --no-compile --no-deps --require-hashes -r requirements/build.txt \
    -r "requirements/${REQUIREMENTS:-runtime}.txt"
# From a copy: setuptools leaves its build directory beside what it builds.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
cp -r pyproject.toml README.md LICENSE predictors terminal simulator service walltimed migrations "$source"
pip install --no-compile --no-deps --no-build-isolation "$source"
"$installed" deploy/manual.py "$root/usr"
pip uninstall --yes setuptools pip
# What a service does not load, and commands but ours.
"$python" deploy/prune.py "$root"/opt/walltimed/lib/python3*/site-packages
find "$root/opt/walltimed/bin" ! -type d ! -name 'python*' ! -name walltimed -delete
# For any processor of this kind, as the image has it; /usr/bin/walltimed says so to every process.
NUMBA_CPU_NAME=generic "$root/opt/walltimed/bin/walltimed" warm-up
# Scripts name the interpreter they were installed with: not the directory of this build.
grep -rlI "$root" "$root/opt/walltimed/bin" "$root/opt/walltimed/pyvenv.cfg" |
    xargs --no-run-if-empty sed -i "s|$root||g"
# Bytecode comes along: the service may not write beside its modules, and removing finds all of it.
find "$root/opt/walltimed" \( -name '*.pyc' -o -name walltimed.lock \) -delete
"$python" -m compileall -q -s "$root" "$root/opt/walltimed/lib"

install -d "$root/usr/bin" "$root/usr/lib/systemd/system" "$root/etc/walltimed" \
    "$root/usr/share/walltimed" "$root/usr/share/doc/walltimed"
install -m 755 deploy/walltimed "$root/usr/bin/walltimed"
install -m 644 deploy/systemd/* "$root/usr/lib/systemd/system"
install -m 640 deploy/etc/walltimed.toml "$root/etc/walltimed"
cp -r integrations/slurm integrations/pbs "$root/usr/share/walltimed"
find "$root/usr/share/walltimed" -name __pycache__ -prune -exec rm -rf {} +
mv "$root/usr/share/walltimed/pbs/walltimed_hook.json" "$root/etc/walltimed/pbs-hook.json"
install -m 644 docs/slurm.md docs/pbs.md docs/users.md docs/forecasts.md docs/deployment.md \
    docs/operations.md LICENSE "$root/usr/share/doc/walltimed"
