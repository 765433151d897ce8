# shellcheck shell=bash disable=SC2154,SC2034
# How deploy.sh speaks to the cluster.

readonly OURS=app.kubernetes.io/part-of=feedmill
readonly NO_JOB='feedmill.dev/phase!=2-migrate'   # a Job can't be changed, so neither compared nor tried

readonly DELETE_TIMEOUT=600s   # a fetcher may drain for 345 s; what takes longer waits for a finalizer that nobody removes

# The verb comes first, the flags last. Always with the context that was checked: switching contexts in another
# terminal must not send the second half of a deploy elsewhere.
k() { kubectl "$@" --context="$context" --namespace="$NAMESPACE"; }

# For what may take long: as a child, so that a signal to this script ends the wait at once.
k_wait() { in_child kubectl "$@" --context="$context" --namespace="$NAMESPACE"; }
in_child() {
  local code=0
  "$@" &
  child=$!
  wait "$child" || code=$?
  child=
  return "$code"
}

error() { tail -n 3 "$work/error"; }
not_found() { grep -q 'NotFound' "$work/error"; }

# facts object|image|secret|catalog|setting: what facts.awk read in the manifests.
facts() { awk -F '\t' -v kind="$1" '$1 == kind' "$work/facts"; }

# objects PHASE [TYPE]: its objects (or those of one fetch type only) as kubectl names them: deployment/writer.
objects() { facts object | awk -F '\t' -v phase="$1" -v type="${2:-}" '$2 == phase && (type == "" || $6 == type) { print $3 "/" $4 }'; }

# await OBJECT SECONDS: until it is ready, if that can be said of its kind.
await() {
  local left generation end=$((SECONDS + $2))
  case $1 in
    # What these two say of themselves may be about the object before it was changed.
    rabbitmqcluster.*)
      generation=$(k get "$1" -o 'jsonpath={.metadata.generation}') &&
        k_wait wait "$1" --for="jsonpath={.status.observedGeneration}=$generation" --timeout="$2s" &&
        k_wait rollout status "statefulset/${1#*/}-server" --timeout="$(until_end)" &&
        k_wait wait "$1" --for=condition=AllReplicasReady --timeout="$(until_end)" ;;
    cluster.*.postgresql.cnpg.io/*) # it doesn't say which generation it speaks of
      generation=$(k get "$1" -o 'jsonpath={.metadata.generation}') || return
      [[ ${generation_before[$1]:-$generation} == "$generation" ]] || in_child sleep "${SETTLE_SECONDS:-10}"
      k_wait wait "$1" --for=condition=Ready --timeout="$(until_end)" &&
        k_wait wait "$1" --for='jsonpath={.status.phase}=Cluster in healthy state' --timeout="$(until_end)" ;;
    deployment/* | statefulset/* | daemonset/*) k_wait rollout status "$1" --timeout="$2s" ;;
    job/*) # it ends with one of two conditions, and kubectl waits for one
      for ((left = $2; left > 0; left -= 5)); do
        if k_wait wait "$1" --for=condition=complete --timeout=5s 2>"$work/error"; then return 0; fi
        grep -q 'timed out' "$work/error" || { cat "$work/error" >&2; return 1; }
        [[ $(k get "$1" -o 'jsonpath={.status.conditions[?(@.type=="Failed")].status}') != True ]] || return 1
      done
      return 1 ;;
  esac
}

until_end() { echo "$((end > SECONDS ? end - SECONDS : 1))s"; }

# each_of_other VERB ARGUMENT…: for each kind of which a fetch type has objects of its own, those of the other type.
# First what runs, then what it needs until it has drained.
each_of_other() {
  local verb=$1 phase kind
  shift
  while read -r phase kind; do
    k_wait "$verb" "$kind" -l "$OURS,feedmill.dev/fetch-type=$other,feedmill.dev/phase=$phase" --ignore-not-found "$@" 2>"$work/error" && continue
    grep -q "doesn't have a resource type" "$work/error" || { cat "$work/error" >&2; return 1; }
  done < <(cat "$work/facts" "$work/facts.other" | awk -F '\t' '$1 == "object" && $6 != "-" { print $2, $3 }' | sort -ru)
}

# Objects that only a former release had are named, not removed. `kubectl apply --prune` goes by labels, which operators
# copy to what they make of our objects (volumes with data among it), and its safe form (ApplySet) is still alpha.
# ConfigMaps are left out: those of former revisions are what a rollback needs.
name_leftovers() {
  local kinds kind name
  # shellcheck disable=SC2016  # a Go template
  local template='{{range .items}}{{if not .metadata.ownerReferences}}{{.kind}}/{{.metadata.name}}{{"\n"}}{{end}}{{end}}'
  kinds=$(facts object | cut -f 3 | grep -vxE 'configmap|job|namespace' | sort -u | paste -s -d , -)
  facts object | awk -F '\t' '{ sub(/\..*/, "", $3); print $3 "/" $4 }' >"$work/names"
  { k get "$kinds" -l "$OURS,feedmill.dev/fetch-type!=$other" -o go-template="$template" 2>/dev/null || true; } |
    while IFS=/ read -r kind name; do
      grep -qxF "${kind,,}/$name" "$work/names" ||
        say "No longer in the manifests, left alone: $kind/$name (kubectl delete it once nothing needs it)"
    done
}

# To create an object is atomic, so this one is a lock for everybody who deploys to the namespace. (The very first
# deploy has no namespace to put it into.)
take_lock() {
  ((!first)) || return 0
  if k create configmap feedmill-deploy-lock --from-literal=holder="$who since $started" >/dev/null 2>"$work/error"; then
    locked=1
    return
  fi
  grep -qE 'AlreadyExists|already exists' "$work/error" || stop "the lock can't be taken: $(error)"
  stop "another deploy is under way: $(k get configmap feedmill-deploy-lock -o 'jsonpath={.data.holder}' 2>/dev/null)
If it is dead: kubectl delete configmap feedmill-deploy-lock --context=$context --namespace=$NAMESPACE"
}

# A password for each user of the broker that the manifests name (NAME-broker-user-USER), if there is none yet. Nobody is
# shown it, and no process has it among its arguments.
make_broker_users() {
  local name
  for name in $(facts secret | cut -f 2 | grep -E '(^|-)broker-user-[a-z]+$' | sort -u); do
    if k get secret "$name" -o name >/dev/null 2>"$work/error"; then continue; fi
    not_found || stop "the secret $name can't be looked for: $(error)"
    head -c 24 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' >"$work/password"
    k create secret generic "$name" --from-literal=username="${name##*-}" --from-file=password="$work/password" >/dev/null 2>"$work/error" ||
      stop "the secret $name can't be made: $(error)"
    rm "$work/password"
    say "secret/$name created, with a new password"
  done
}
