#!/bin/sh
# Makes the base image of the Dockerfile where no registry can be reached: Debian of the same
# release by debootstrap, with a Python 3.11 of this machine in /usr/local. As root:
#
#     deploy/tests/base.sh [MIRROR]
#
# Needs debootstrap, and podman or docker; takes some minutes, and 180 MB.
set -eu
mirror=${1:-http://deb.debian.org/debian}
engine=$(command -v podman || command -v docker)
prefix=$(python3.11 -c 'import sys; print(sys.base_prefix)')
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
chmod 755 "$base"

debootstrap --variant=minbase --include=ca-certificates,netbase,tzdata,libssl3,libsqlite3-0,libffi8,libncursesw6,libreadline8,libbz2-1.0,liblzma5,zlib1g,libgdbm6,libnsl2,libtirpc3,libuuid1,libexpat1 \
    bookworm "$base" "$mirror"
tar -C "$prefix" --exclude='lib/python3.11/site-packages/*' --exclude=lib/python3.11/test \
    --exclude='*.a' --exclude=__pycache__ --exclude=share -cf - . | tar -C "$base/usr/local" -xf -
find "$base/usr/local/bin" -type f ! -name 'python3.11*' -delete
chroot "$base" sh -c 'ldconfig && ln -sf python3.11 /usr/local/bin/python && python -m ensurepip'
# As the slim images are: no debugging symbols, no manuals, no other languages, no lists of packages.
for each in doc man locale info lintian; do rm -rf "$base/usr/share/$each"; done
find "$base/usr/local" -name '*.so*' -type f -exec strip --strip-unneeded {} +
rm -rf "$base"/var/lib/apt/lists/* "$base"/var/cache/apt/*
tar -C "$base" -cf - . | "$engine" import \
    --change 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - docker.io/library/python:3.11-slim
