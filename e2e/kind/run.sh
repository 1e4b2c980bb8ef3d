#!/usr/bin/env bash
# Runs the end-to-end tests on three kind clusters: makes them, names them to the tests, and deletes them afterwards.
#
#   e2e/kind/run.sh [pytest arguments]
#
# Needs kind, kubectl, Docker, and a virtual environment in .venv. Settings, by environment:
#   KIND_NODE_IMAGE   image of the nodes, for another Kubernetes version; default is what this kind ships
#   KEEP=1            leave the clusters running; the next run uses them
set -euo pipefail
cd "$(dirname "$0")/../.."

prefix=jobmirror
names=(management east west)
directory=build-output/kind

exists() {
  kind get clusters 2>/dev/null | grep --line-regexp "$prefix-$1" >/dev/null
}

create() {
  local name=$1 kubeconfig=$directory/$1.kubeconfig
  if exists "$name"; then
    kind export kubeconfig --name "$prefix-$name" --kubeconfig "$kubeconfig"
    return
  fi
  kind create cluster --name "$prefix-$name" --kubeconfig "$kubeconfig" --config e2e/kind/cluster.yaml --wait 180s \
    ${KIND_NODE_IMAGE:+--image "$KIND_NODE_IMAGE"}
  # Pods of tests have images that do not exist: only the simulated node may take them.
  kubectl --kubeconfig "$kubeconfig" taint nodes --all --overwrite node-role.kubernetes.io/control-plane=:NoSchedule
}

delete_all() {
  local name
  [[ ${KEEP:-} == 1 ]] && return
  for name in "${names[@]}"; do
    if exists "$name"; then
      kind delete cluster --name "$prefix-$name" --kubeconfig "$directory/$name.kubeconfig"
    fi
    rm -f "$directory/$name.kubeconfig"
  done
}

mkdir -p "$directory"
trap delete_all EXIT
for name in "${names[@]}"; do
  create "$name"
done

export USE_EXISTING_CLUSTER=true MIRROR_E2E_SIMULATE_NODES=true
export MIRROR_E2E_MANAGEMENT=$directory/management.kubeconfig
export MIRROR_E2E_WORKERS=$directory/east.kubeconfig:$directory/west.kubeconfig
.venv/bin/python -m pytest e2e "$@"
