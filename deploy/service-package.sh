# The package of the service: its tree, and what pack.sh has to know of it.
. deploy/pack.sh
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
root=$build/root
if [ -n "${TREE:-}" ]; then cp -a "$TREE" "$root"; else deploy/build-tree.sh "$root"; fi
name=walltimed architecture=
summary='Walltime predictions for HPC batch schedulers'
instead_of='walltimed-slurm, walltimed-pbs'
units='walltimed.service walltimed-reconcile.timer walltimed-pbs.service
    walltimed-slurm-updater.service walltimed-slurm-forwarder.service'
units=$(echo $units)
kept='/etc/walltimed/walltimed.toml /etc/walltimed/pbs-hook.json'
