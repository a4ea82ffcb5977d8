#!/usr/bin/env bash
# build_openpbs.sh SOURCE PREFIX: an OpenPBS for tests/acceptance/test_openpbs.py.
#
# SOURCE is a directory or a tar archive of openpbs/openpbs, release 23.06; PREFIX is where it is
# installed, outside /tmp, where PBS refuses to run from. Debian 12, as root; 63 MB, about a
# quarter of an hour on one core, once. Nothing is started, and no file outside PREFIX is made.
set -euo pipefail
source=${1:?a directory or a tar archive of OpenPBS 23.06}
prefix=${2:?where to install it}

apt-get update --quiet=2
DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
    autoconf automake g++ gcc libcjson-dev libedit-dev libexpat1-dev libhwloc-dev libical-dev \
    libncurses-dev libssl-dev libtool libx11-dev libxext-dev libxft-dev libxt-dev make pkg-config \
    postgresql postgresql-contrib postgresql-server-dev-all python3-dev swig tcl-dev tk-dev

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
if [ -d "$source" ]; then
    cp -a "$source/." "$build"
else
    tar --extract --file "$source" --directory "$build" --strip-components 1
fi
cd "$build"
# Python 3.11 has no such header; Python.h declares what was in it.
sed -i '/#include <eval.h>/d' src/lib/Libpython/pbs_python_external.c
# As Python 3.10 and newer want the length of a text; else pbs.logmsg raises in every hook.
sed -i -e '1i #define PY_SSIZE_T_CLEAN' -e 's/int \(emsg_len\|msg_len\) = 0/Py_ssize_t \1 = 0/' \
    src/lib/Libpython/common_python_utils.c
./autogen.sh
./configure --prefix="$prefix" PYTHON=/usr/bin/python3 CFLAGS="-g -O1 -w"
make -j "${JOBS:-1}"
make install
chmod 4755 "$prefix/sbin/pbs_iff" "$prefix/sbin/pbs_rcp"  # as its packages do: users connect through them
"$prefix/bin/qstat" --version
