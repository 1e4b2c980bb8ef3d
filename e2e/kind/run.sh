#!/usr/bin/env bash
# Installs the manager on kind as an operator would, sees one Job run there, then runs the end-to-end tests on the same
# clusters as existing ones; everything is deleted afterwards.
#
#   e2e/kind/run.sh [pytest arguments]
#
# Needs kind, kubectl, Docker, and a virtual environment (make .venv/.installed). Settings, by environment:
#   KIND_NODE_IMAGE   image of the nodes, for another Kubernetes version; default is what this kind ships
#   OVERLAY           which of deploy/kustomize/overlays is installed; default high-availability
#   VENV              the virtual environment; default .venv
#   KEEP=1            leave the clusters running; the next run uses them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

prefix=jobmirror
management=management workers=(east west)
overlay=${OVERLAY:-high-availability}
venv=${VENV:-.venv}
directory=$PWD/build-output/kind
namespace=jobmirror-system

step() {
  printf '\n== %s  %s\n' "$(date -u +%H:%M:%S)" "$*"
}

need() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || {
      echo "run.sh: $program is not installed" >&2
      exit 2
    }
  done
}

exists() {
  kind get clusters 2>/dev/null | grep --line-regexp "$prefix-$1" >/dev/null
}

# on CLUSTER ARGUMENTS...: kubectl there.
on() {
  local cluster=$1
  shift
  kubectl --kubeconfig "$directory/$cluster.kubeconfig" "$@"
}

create() {
  local name=$1 kubeconfig=$directory/$1.kubeconfig
  if exists "$name"; then
    kind export kubeconfig --name "$prefix-$name" --kubeconfig "$kubeconfig"
    return
  fi
  kind create cluster --name "$prefix-$name" --kubeconfig "$kubeconfig" --config e2e/kind/cluster.yaml --wait 180s \
    ${KIND_NODE_IMAGE:+--image "$KIND_NODE_IMAGE"}
}

install() {
  local version image
  version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
  image=jobmirror:$version
  docker build --file deploy/image/Dockerfile --tag "$image" .
  kind load docker-image "$image" --name "$prefix-$management"
  on "$management" apply --server-side --kustomize "deploy/kustomize/overlays/$overlay"
  on "$management" --namespace "$namespace" rollout status deployment/jobmirror --timeout 180s
}

# The manager runs in a pod: there, a worker's API server is found by the name of its node on the network of Docker.
register() {
  local name=$1
  "$venv/bin/mirror" worker add "$name" --kubeconfig "$directory/$name.kubeconfig" --context "kind-$prefix-$name" \
    --management-kubeconfig "$directory/$management.kubeconfig" --namespace "$namespace" \
    --server "https://$prefix-$name-control-plane:6443"
}

# A real pod on a real node, by way of what was installed.
see_a_job_run() {
  on "$management" apply --filename config/samples/plain.yaml
  on "$management" wait --for condition=Complete --timeout 180s job/plain
  on "$management" delete job plain
}

# Pods of tests have images that do not exist: only the simulated node may take them.
leave_nodes_to_the_tests() {
  local name
  for name in "${workers[@]}"; do
    on "$name" taint nodes --all --overwrite node-role.kubernetes.io/control-plane=:NoSchedule
  done
}

delete_all() {
  local code=$? name
  if [[ ${KEEP:-} == 1 ]]; then
    return "$code"
  fi
  if ((code != 0)) && [[ -e $directory/$management.kubeconfig ]]; then
    on "$management" --namespace "$namespace" logs deployment/jobmirror --tail 100 || true
  fi
  for name in "$management" "${workers[@]}"; do
    if exists "$name"; then
      kind delete cluster --name "$prefix-$name" --kubeconfig "$directory/$name.kubeconfig" || true
    fi
    rm -f "$directory/$name.kubeconfig"
  done
  return "$code"
}

need kind kubectl docker
mkdir -p "$directory"
trap delete_all EXIT
step "three clusters"
for name in "$management" "${workers[@]}"; do
  create "$name"
done

step "install $overlay"
install
step "register workers"
for name in "${workers[@]}"; do
  register "$name"
done
step "a Job"
see_a_job_run
leave_nodes_to_the_tests

step "end-to-end tests"
export USE_EXISTING_CLUSTER=true MIRROR_E2E_SIMULATE_NODES=true
export MIRROR_E2E_MANAGEMENT=$directory/$management.kubeconfig
export MIRROR_E2E_WORKERS=$directory/east.kubeconfig:$directory/west.kubeconfig
"$venv/bin/python" -m pytest e2e "$@"
