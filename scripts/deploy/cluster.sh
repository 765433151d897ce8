# shellcheck shell=bash disable=SC2154,SC2034
# How deploy.sh speaks to the cluster.

readonly OURS=app.kubernetes.io/part-of=feedmill
readonly JOB=feedmill.dev/phase=2-migrate
readonly NO_JOB='feedmill.dev/phase!=2-migrate'   # a Job can't be changed, so neither compared nor tried
readonly DELETE_TIMEOUT=600s   # a fetcher may drain for 345 s; what takes longer waits for a finalizer that nobody removes

# Always with the context that was checked: switching contexts in another terminal must not send half a deploy elsewhere.
k() { kubectl "$@" --context="$context" --namespace="$NAMESPACE"; }
# For what may take long: as a child, so that a signal to this script ends the wait at once.
k_wait() { in_child kubectl "$@" --context="$context" --namespace="$NAMESPACE"; }
in_child() { "$@" & wait "$!"; }
error() { tail -n 3 "$work/error"; }
not_found() { grep -q 'NotFound' "$work/error"; }
answers() { k get namespace "$NAMESPACE" --request-timeout="$1" >/dev/null 2>"$work/error" || not_found; } # TIMEOUT
exists() { ! grep -vE 'AlreadyExists|already exists' "$work/error" >/dev/null; }

# The overlay with tag and digests, by a kustomization around it, which can name it by a relative path only.
render() {
  local one
  cat >"$work/kustomization.yaml" <<YAML
resources: ["$(tr -dc / <<<"$work" | sed 's:/:../:g')${overlay#/}/$type"]
images:
$(for one in "${images[@]}"; do echo "- {name: \"$one\", newTag: \"$tag\"${digests[$one]:+, digest: \"${digests[$one]}\"}}"; done)
YAML
  deployed=$image:$tag${digests[$image]:+@${digests[$image]}}
  kubectl kustomize "$work" >"$work/manifests" || stop "the manifests can't be rendered with the tag $tag (see above)"
}

# What manifests.py said of the manifests, of what was before, and of what else there is.
manifests() { .feedmill/venv/bin/python -m scripts.deploy.manifests "$@"; }
facts() { sed -n "s|^$1	||p" "$work"/facts*; }   # WORD
objects() { facts "object	$1"; }   # PHASE; as kubectl names them: deployment/writer

# await OBJECT SECONDS: until it is ready, if that can be said of its kind.
await() {
  local left end=$((SECONDS + $2))
  case $1 in
    # What these two say of themselves may be about the object before it was changed.
    rabbitmqcluster.*)
      k_wait wait "$1" --for="jsonpath={.status.observedGeneration}=$(generation_of "$1")" --timeout="$2s" &&
        k_wait rollout status "statefulset/${1#*/}-server" --timeout="$(until_end)" &&
        k_wait wait "$1" --for=condition=AllReplicasReady --timeout="$(until_end)" ;;
    cluster.*.postgresql.cnpg.io/*) # it doesn't say which generation it speaks of
      ! is_changed "$1" || in_child sleep "${SETTLE_SECONDS:-10}"
      k_wait wait "$1" --for=condition=Ready --timeout="$(until_end)" &&
        k_wait wait "$1" --for='jsonpath={.status.phase}=Cluster in healthy state' --timeout="$(until_end)" ;;
    deployment/* | statefulset/* | daemonset/*) k_wait rollout status "$1" --timeout="$2s" ;;
    job/*) # it ends with one of two conditions, and kubectl waits for one
      for ((left = $2; left > 0; left -= 5)); do
        ! k_wait wait "$1" --for=condition=complete --timeout=5s 2>"$work/error" || return 0
        grep -q 'timed out' "$work/error" || { cat "$work/error" >&2; return 1; }
        [[ $(k get "$1" -o 'jsonpath={.status.conditions[?(@.type=="Failed")].status}') != True ]] || return 1
      done
      return 1 ;;
  esac
}

until_end() { echo "$((end > SECONDS ? end - SECONDS : 1))s"; }
generation_of() { k get "$1" -o 'jsonpath={.metadata.generation}'; }

# What differs, an object a heading; its number in the series of its changes says nothing.
show_difference() {
  local code=0
  KUBECTL_EXTERNAL_DIFF='diff -u -N -I generation' k diff -f "$work/manifests" -l "$NO_JOB" >"$work/diff" || code=$?
  sed -E '/^(diff|---) |^.  +(kubectl.kubernetes.io.last-applied|\{"apiVersion")/d; /^\+  (creationTimestamp|generation|uid): /d; s:^\+\+\+ [^ ]*/([^/	 ]*).*:\1\::' "$work/diff"   # values of Secrets are asterisks
  ((code <= 1)) || reject "kubectl diff failed (see above)"
  ((code)) || say "No object differs."
}

# All that is labelled as ours, of all kinds but those that stand for something else (Endpoints, events, figures). `kubectl
# apply --prune` would go by labels, which operators copy to what they make of our objects, volumes with data among it.
take_inventory() {
  local kinds
  kinds=$(kubectl api-resources --verbs=list --namespaced -o name --context="$context" 2>/dev/null |
    grep -vE '^(endpoints|events(\.events\.k8s\.io)?|.*\.metrics\.k8s\.io)$' | paste -s -d , -) || true   # an API of somebody else may be down
  k get "$kinds" -l "$OURS" -o json >"$work/found" 2>"$work/error" ||
    complain "not looked at, since they can't be listed: $(sed -E 's/.*cannot list resource "([^"]*)".*/\1/' "$work/error" | paste -s -d ' ' -)"
  # Rights may be missing; a server that does not answer must not look like one that has nothing.
  [[ $kinds ]] && ! grep -vE 'Forbidden|^Warning|requested resource' "$work/error" >/dev/null &&
    manifests others "$work/manifests" "$other" <"$work/found" >"$work/facts-others"
}

# In the foreground: until the pods have drained, they need the network policies that go last.
remove_other() {
  local object
  take_inventory || return
  for object in $(facts remove); do
    k_wait delete "$object" --ignore-not-found --cascade=foreground --timeout="$DELETE_TIMEOUT" || return
  done
}

# Of the ConfigMaps that kustomize named by their content those stay that something refers to, also a former revision.
remove_old_config_maps() {
  local object
  k get deployments,replicasets,statefulsets,daemonsets,cronjobs,jobs,pods -o yaml >"$work/found" || { complain "old ConfigMaps stay (see above)"; return 0; }
  for object in $(facts old); do
    grep -qF "${object#*/}" "$work/found" || k delete "$object" --ignore-not-found || complain "$object stays (see above)"
  done
}

# To create an object is atomic. (The very first deploy has no namespace to put it into.)
take_lock() {
  ((!first)) || return 0
  unlock="kubectl delete configmap feedmill-deploy-lock --context=$context --namespace=$NAMESPACE"
  holder="$who on ${HOSTNAME:-an unknown host}, process $$"   # from here on: a signal may come while the lock is made
  ! k create configmap feedmill-deploy-lock --from-literal=holder="$holder" --from-literal=since="$started" >/dev/null 2>"$work/error" || return 0
  exists || stop "the lock can't be taken: $(error)"
  stop "another deploy is under way: $(lock_says '{.data.holder}, since {.data.since}')
If that process has ended, the deploy is dead (it is now $(date -u +%Y-%m-%dT%H:%M:%SZ)). Then:
  $unlock"
}
lock_says() { k get configmap feedmill-deploy-lock -o "jsonpath=$1" 2>/dev/null; }
release_lock() {
  [[ $holder && $(lock_says '{.data.holder}' || echo "$holder") == "$holder" ]] || return 0
  k delete configmap feedmill-deploy-lock --ignore-not-found >/dev/null 2>"$work/error" ||
    complain "the lock stays, and keeps others from deploying ($(error)). Once the cluster answers:"$'\n'"  $unlock"
}

# A password for each user of the broker that the manifests name, if there is none yet. No process has it as an argument.
make_broker_users() {
  local name
  for name in $(facts 'secret	ready' | grep -E '(^|-)broker-user-[a-z]+$'); do
    ! k get secret "$name" >/dev/null 2>&1 || continue
    head -c 24 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' >"$work/password"
    k create secret generic "$name" --from-literal=username="${name##*-}" --from-file=password="$work/password" >/dev/null 2>"$work/error" ||
      stop "the secret $name can't be made: $(error)"
    say "secret/$name created, with a new password"
  done
}
