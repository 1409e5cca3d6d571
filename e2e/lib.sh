# shellcheck shell=bash
# Shared by the scripts of this folder. Sets KUBECONFIG and PATH; knows whether the cluster is ours.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CLUSTER_CACHE=${CLUSTER_CACHE:-$HOME/.cache/agentrun/cluster}
cluster=$root/e2e/cluster/cluster
system=agentrun-system
ours=

say() { printf '%s\n' "$*" >&2; }

# Uses the caller's cluster, or brings one up: cluster_up [--control-plane]
cluster_up() {
  export PATH=$CLUSTER_CACHE/bin:$PATH
  if [[ -n ${KUBECONFIG:-} ]]; then
    say "using the cluster of KUBECONFIG"
    return
  fi
  say "bringing a cluster up (its programs are built first: a quarter of an hour the first time)"
  "$cluster" build >&2
  "$cluster" up "$@" >&2
  ours=1
  KUBECONFIG=$("$cluster" kubeconfig)
  export KUBECONFIG
}

# Takes down what cluster_up brought up.
cluster_down() {
  [[ -z $ours ]] || "$cluster" down >&2
}

# Images into our cluster. A user's own cluster has to find them itself.
load_images() {
  say "building binaries and images"
  make --no-print-directory -C "$root" images >"${1:-/dev/null}" 2>&1 || { say "the images could not be built: run make images"; return 1; }
  [[ -n $ours ]] || return 0
  local host_tuple archives
  host_tuple=$(rustc --print host-tuple)
  archives=$(AGENTRUN_STATIC_DIR=$CARGO_TARGET_DIR/$host_tuple/static "$root/images/build" | awk '{print $2}')
  # shellcheck disable=SC2086 # one archive a line
  "$cluster" load-image $archives >&2
}

# As a user would: helm, with the charts of this checkout.
install_agentrun() {
  helm upgrade --install agentrun-crds "$root/charts/agentrun-crds" --namespace $system --create-namespace >&2
  helm upgrade --install agentrun "$root/charts/agentrun" --namespace $system --wait --timeout 3m \
    --set image="${AGENTRUN_IMAGE:-localhost/agentrun:dev}" \
    --set runtimeImage="${AGENTRUN_RUNTIME_IMAGE:-localhost/agentrun-runtime:dev}" \
    --set defaultImage="${AGENTRUN_DEFAULT_IMAGE:-localhost/agentrun-python:dev}" \
    --set imagePullPolicy=IfNotPresent >&2
}

uninstall_agentrun() {
  helm uninstall agentrun --namespace $system --wait >&2 || true
  helm uninstall agentrun-crds --namespace $system >&2 || true
}

# Copies a run's outputs out of its volume to $results, with a Pod that mounts it read-only: fetch RUN
fetch() {
  local run=$1 claim uid
  claim=$(kubectl -n $namespace get agentrun "$run" -o jsonpath='{.status.claimName}')
  uid=$(kubectl -n $namespace get agentrun "$run" -o jsonpath='{.metadata.uid}')
  kubectl -n $namespace apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: "read-$run"}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: read
    image: ${AGENTRUN_DEFAULT_IMAGE:-localhost/agentrun-python:dev}
    imagePullPolicy: IfNotPresent
    command: [sleep, "600"]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: data, mountPath: /outputs, subPath: "users/default/threads/$uid/user-data/outputs", readOnly: true}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: $claim, readOnly: true}}]
Y
  kubectl -n $namespace wait "pod/read-$run" --for=condition=Ready --timeout=60s >/dev/null
  mkdir -p "$results/$run"
  kubectl -n $namespace exec "read-$run" -- tar -C /outputs -cf - . | tar -C "$results/$run" -xf -
  kubectl -n $namespace delete pod "read-$run" --wait=false >/dev/null
}

# For demonstrations, which work in $namespace. Says what the cluster says when it failed, and gives everything back:
# leave CODE KINDS COMPONENT
leave() {
  local code=$1 kinds=$2 component=$3
  if [[ $code -ne 0 ]]; then
    say "the demo failed; what the cluster says:"
    kubectl -n $namespace get "$kinds" >&2 || true
    kubectl -n $namespace get agentruns -o jsonpath='{range .items[*]}{.metadata.name}: {.status.waitingFor}{.status.conditions}{"\n"}{end}' >&2 || true
    kubectl -n $system logs "deployment/agentrun-$component" --tail=20 >&2 || true
  fi
  if [[ -z $ours ]]; then
    kubectl delete namespace $namespace --ignore-not-found --timeout=2m >&2 || true
    uninstall_agentrun
  fi
  cluster_down
  exit "$code"
}

# One line whenever something has changed, until every run has its end: follow KINDS COLUMNS MINUTES
follow() {
  local last='' now deadline=$((SECONDS + $3 * 60))
  while :; do
    now=$(kubectl -n $namespace get "$1" --no-headers -o custom-columns="$2")
    if [[ $now != "$last" ]]; then
      printf '%s\n\n' "$now"
      last=$now
    fi
    kubectl -n $namespace get agentruns -o json | jq -e 'all(.items[]; .status.completionTime)' >/dev/null && return
    [[ $SECONDS -lt $deadline ]] || { say "not over after $3 minutes"; return 1; }
    kubectl -n $namespace wait agentruns --all --for=jsonpath='{.status.completionTime}' --timeout=2s >/dev/null 2>&1 || true
  done
}
