#!/bin/sh
# Builds walltimed-slurm and walltimed-pbs, the packages for a controller whose service runs on
# another host: Lua and Python 3.6 that need nothing else. As .deb, and as .rpm where rpmbuild is.
#
#     deploy/build-controllers.sh [OUTPUT-DIRECTORY]
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-.}"
output=$(realpath "${1:-.}")
. deploy/pack.sh
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
architecture=all

tree() { # MANAGER: its files, its pages and its units
    root=$build/$name
    install -d "$root/usr/share/walltimed/$1" "$root/usr/share/doc/$name" \
        "$root/usr/lib/systemd/system" "$root/etc/walltimed"
    cp integrations/"$1"/* "$root/usr/share/walltimed/$1" 2> /dev/null || true # not __pycache__
    install -m 644 "docs/$1.md" LICENSE "$root/usr/share/doc/$name"
    for unit in $units; do install -m 644 "deploy/systemd/$unit" "$root/usr/lib/systemd/system"; done
}

pack() {
    pack_deb
    ! command -v rpmbuild > /dev/null || pack_rpm
}

name=walltimed-slurm instead_of= kept=
summary='Submit filter and forwarder of walltimed for Slurm'
units=walltimed-slurm-forwarder.service
needs_deb='python3 (>= 3.6), lua-socket' needs_rpm='/usr/bin/python3 lua-socket'
tree slurm
pack

name=walltimed-pbs instead_of= kept=/etc/walltimed/pbs-hook.json
summary='Hook and follower of walltimed for PBS and Torque'
units=walltimed-pbs.service
needs_deb='python3 (>= 3.6)' needs_rpm=/usr/bin/python3
tree pbs
mv "$root/usr/share/walltimed/pbs/walltimed_hook.json" "$root/etc/walltimed/pbs-hook.json"
pack
