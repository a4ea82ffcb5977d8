#!/usr/bin/env bash
# make_slurm_root.sh RELEASE DIR: a tree of another Debian release with its Slurm, for the tests.
#
# trixie has Slurm 24.11, sid the newest. Then: WALLTIMED_TEST_SLURM_ROOT=DIR pytest tests/acceptance
# -k slurm. As root, with debootstrap; some minutes and 500 MB. Nothing is started and nothing stays
# mounted. A mirror other than debootstrap's own: MIRROR=URL.
set -euo pipefail
release=${1:?trixie or sid}
root=${2:?the directory to make}

apt-get update --quiet=2
DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends debootstrap
debootstrap --variant=minbase "$release" "$root" ${MIRROR:+"$MIRROR"}
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"  # packages start no daemons
chmod +x "$root/usr/sbin/policy-rc.d"
unshare --mount --propagation private bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --bind /etc/resolv.conf "$1/etc/resolv.conf"
    if [ -d /etc/apt/apt.conf.d ]; then mount --bind /etc/apt/apt.conf.d "$1/etc/apt/apt.conf.d"; fi
    export DEBIAN_FRONTEND=noninteractive
    chroot "$1" apt-get update --quiet=2
    chroot "$1" apt-get install --quiet=2 --yes --no-install-recommends \
        slurmctld slurmd slurm-client munge slurm-wlm-elasticsearch-plugin lua-socket \
        slurmdbd slurm-wlm-mysql-plugin
' make-slurm-root "$root"
chroot "$root" dpkg-query --show slurmctld
