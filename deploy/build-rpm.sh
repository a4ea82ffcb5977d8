#!/bin/sh
# Builds walltimed-<version>-1.<architecture>.rpm, from the tree of build-tree.sh; needs rpmbuild
# (Debian: package rpm).
#
#     deploy/build-rpm.sh [OUTPUT-DIRECTORY]
#
# It needs the distribution's python3.11 (EL 8.8 and 9.2 have it), and brings no interpreter of its
# own: security updates of Python are the distribution's, and the package is smaller. Wheels are for
# glibc 2.28 and newer, so a build on another distribution with Python 3.11 fits. TREE names a tree
# that was built before.
set -eu
cd "$(dirname "$0")/.."
output=$(realpath "${1:-.}")
PYTHON=${PYTHON:-/usr/bin/python3.11}
export PYTHON
. deploy/service-package.sh
needs_rpm=$(readlink -f "$root/opt/walltimed/bin/python")
pack_rpm
