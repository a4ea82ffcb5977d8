#!/bin/sh
# Builds everything that a release has into a directory: packages of the service and for
# controllers, wheel and source archive, notes, bill of materials, checksums.
#
#     deploy/release.sh [OUTPUT-DIRECTORY]
#
# With the version of pyproject.toml, of which CHANGELOG.md must have a section.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-dist}"
output=$(realpath "${1:-dist}")
python=${PYTHON:-/usr/bin/python3}
. deploy/pack.sh
notes=$(sed -n "/^## \[$version\]/,/^## \[/{/^## \[/!p}" CHANGELOG.md)
[ -n "$notes" ] || { echo "CHANGELOG.md has no section [$version]" >&2; exit 1; }
printf '%s\n' "$notes" > "$output/walltimed-$version.notes.md"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${TREE:-}" ]; then
    TREE=$work/tree
    deploy/build-tree.sh "$TREE"
fi
export TREE
deploy/build-deb.sh "$output"
deploy/build-controllers.sh "$output"
! command -v rpmbuild > /dev/null || deploy/build-rpm.sh "$output"
git archive --format tar.gz --prefix "walltimed-$version/" -o "$output/walltimed-$version.tar.gz" HEAD
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-deps --require-hashes -r requirements/build.txt
git archive --prefix source/ HEAD | tar -xf - -C "$work"
"$work/venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$output" "$work/source"
"$python" deploy/sbom.py requirements/runtime.txt > "$output/walltimed-$version.cdx.json"
cd "$output"
sha256sum -- walltimed* > SHA256SUMS
