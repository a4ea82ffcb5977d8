#!/bin/sh
# Builds walltimed_<version>_<architecture>.deb, from the tree of build-tree.sh.
#
#     deploy/build-deb.sh [OUTPUT-DIRECTORY]
#
# Build it on the distribution it is for: it uses that one's python3 (3.11 or newer). TREE names a
# tree that was built before.
set -eu
cd "$(dirname "$0")/.."
output=$(realpath "${1:-.}")
. deploy/service-package.sh
needs_deb=$("${PYTHON:-/usr/bin/python3}" -c 'import sys; print("python3 (>= 3.%d), python3 (<< 3.%d)" % (sys.version_info[1], sys.version_info[1] + 1))')
pack_deb
