# shellcheck shell=bash disable=SC2154,SC2034
# How deploy.sh speaks to the cluster.

readonly OURS=app.kubernetes.io/part-of=feedmill
readonly JOB=feedmill.dev/phase=2-migrate
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
exists() { ! grep -vE 'AlreadyExists|already exists' "$work/error" >/dev/null; }

python() { .feedmill/venv/bin/python -m scripts.deploy.manifests "$@"; }

# render [TAG]: the overlay; with a tag (and the digests that are known), by a kustomization of our own around it, outside
# of the tree. It can name the overlay by a relative path only.
render() {
  if (($# == 0)); then kubectl kustomize "$overlay/$type"; return; fi
  cat >"$work/kustomization.yaml" <<YAML
resources: ["$(tr -dc / <<<"$work" | sed 's:/:../:g')${overlay#/}/$type"]
images:
$(for one in "${images[@]}"; do echo "- {name: \"$one\", newTag: \"$1\"${digests[$one]:+, digest: \"${digests[$one]}\"}}"; done)
YAML
  kubectl kustomize "$work"
}

# facts WORD: what manifests.py said of the manifests (and of what was before), without the word.
facts() { sed -n "s/^$1	//p" "$work/facts"; }

# objects PHASE: its objects as kubectl names them: deployment/writer.
objects() { facts object | sed -n -E "s/^$1	([^	]*)	.*/\1/p"; }

# await OBJECT SECONDS: until it is ready, if that can be said of its kind.
await() {
  local left generation end=$((SECONDS + $2))
  case $1 in
    # What these two say of themselves may be about the object before it was changed.
    rabbitmqcluster.*)
      generation=$(generation_of "$1") &&
        k_wait wait "$1" --for="jsonpath={.status.observedGeneration}=$generation" --timeout="$2s" &&
        k_wait rollout status "statefulset/${1#*/}-server" --timeout="$(until_end)" &&
        k_wait wait "$1" --for=condition=AllReplicasReady --timeout="$(until_end)" ;;
    cluster.*.postgresql.cnpg.io/*) # it doesn't say which generation it speaks of
      ! is_changed "$1" || in_child sleep "${SETTLE_SECONDS:-10}"
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
generation_of() { k get "$1" -o 'jsonpath={.metadata.generation}'; }

# What differs, an object a heading; its number in the series of its changes says nothing.
show_difference() {
  local code=0
  KUBECTL_EXTERNAL_DIFF='diff -u -N -I generation' k diff -f "$work/manifests" -l "$NO_JOB" >"$work/diff" || code=$?
  sed -E '/^(diff|---) /d; /^\+  (creationTimestamp|generation|uid): /d; s:^\+\+\+ [^ ]*/([^/	 ]*).*:\1\::' "$work/diff"   # values of Secrets are asterisks
  ((code <= 1)) || reject "kubectl diff failed (see above)"
  ((code)) || say "No object differs."
}

# All that is labelled as ours, of all kinds that the cluster knows: also of those that the manifests no longer have. Not
# what stands for something else (Endpoints, events, figures).
# A line: OBJECT PHASE TYPE owned|free
take_inventory() {
  local kinds kind api name rest
  # shellcheck disable=SC2016  # a Go template
  local template='{{range .items}}{{.kind}} {{.apiVersion}} {{.metadata.name}} {{or (index .metadata.labels "feedmill.dev/phase") "-"}} {{or (index .metadata.labels "feedmill.dev/fetch-type") "-"}} {{if .metadata.ownerReferences}}owned{{else}}free{{end}}{{"\n"}}{{end}}'
  kinds=$(kubectl api-resources --verbs=list --namespaced -o name --context="$context" 2>/dev/null |
    grep -vE '^(endpoints|events(\.events\.k8s\.io)?|.*\.metrics\.k8s\.io)$' | paste -s -d , -) || true   # an API of somebody else may be down
  k get "$kinds" -l "$OURS" -o go-template="$template" >"$work/found" 2>"$work/error" ||
    complain "not looked at, since they can't be listed: $(sed -E 's/.*cannot list resource "([^"]*)".*/\1/' "$work/error" | paste -s -d ' ' -)"
  # Rights may be missing; a server that does not answer must not look like one that has nothing.
  [[ $kinds ]] && ! grep -vE 'Forbidden|^Warning|requested resource' "$work/error" >/dev/null || return
  while read -r kind api name rest; do   # named as manifests.py names them
    if [[ ${api%/*} == *.* && $api != *.k8s.io/* ]]; then kind+=.${api#*/}.${api%/*}; fi
    echo "${kind,,}/$name $rest"
  done <"$work/found" | sort -u >"$work/inventory"
}

# First what runs, then what it needs until it has drained. Of what others own the Jobs only, and before their CronJob: one
# that somebody made of it by hand is not waited for with it.
of_other() {
  local object phase fetch owner
  while read -r object phase fetch owner; do
    [[ $fetch == "$other" && ($owner == free || $object == job/*) ]] || continue
    [[ $object != job/* ]] || phase=4
    echo "$phase $object"
  done <"$work/inventory" | sort -s -r -k 1,1 | cut -d ' ' -f 2
}

# In the foreground: until the pods have drained, they need the network policies that go last.
remove_other() {
  local object
  take_inventory || return
  for object in $(of_other); do
    k_wait delete "$object" --ignore-not-found --cascade=foreground --timeout="$DELETE_TIMEOUT" || return
  done
}

# Objects that only a former release had are named, not removed. `kubectl apply --prune` goes by labels, which operators
# copy to what they make of our objects (volumes with data among it), and its safe form (ApplySet) is still alpha.
leftovers() {
  local object phase fetch owner
  while read -r object phase fetch owner; do
    [[ $owner == owned || $fetch == "$other" ]] || is_generated "$object" || facts object | grep -F "	$object	" >/dev/null || echo "$object"
  done <"$work/inventory"
}

# Whether it is a ConfigMap that kustomize named by its content (feedmill-config-h26tc4kd69), and the manifests have one of that name.
is_generated() {
  [[ $1 =~ ^(configmap/.+)-[0-9a-z]{10}$ ]] && facts object | grep -E "	${BASH_REMATCH[1]}-[0-9a-z]{10}	" >/dev/null
}

# Of the generated ConfigMaps those stay that something refers to, also a former revision that can be gone back to.
remove_old_config_maps() {
  local object old=()
  k get deployments,replicasets,statefulsets,daemonsets,cronjobs,jobs,pods -o yaml >"$work/found" 2>"$work/error" ||
    { complain "old ConfigMaps stay: $(error)"; return 0; }
  while read -r object _; do
    ! is_generated "$object" || facts object | grep -F "	$object	" >/dev/null || grep -qF "${object#*/}" "$work/found" || old+=("$object")
  done <"$work/inventory"
  ((${#old[@]} == 0)) || k delete "${old[@]}" --ignore-not-found || complain "old ConfigMaps stay (see above)"
}

# To create an object is atomic, so this one is a lock for everybody who deploys to the namespace. (The very first
# deploy has no namespace to put it into.)
take_lock() {
  ((!first)) || return 0
  if k create configmap feedmill-deploy-lock --from-literal=holder="$who on ${HOSTNAME:-an unknown host}, process $$" \
    --from-literal=since="$started" >/dev/null 2>"$work/error"; then
    locked=1
    return
  fi
  exists || stop "the lock can't be taken: $(error)"
  stop "another deploy is under way: $(k get configmap feedmill-deploy-lock -o 'jsonpath={.data.holder}, since {.data.since}' 2>/dev/null)
It is dead if that process has ended (its lock is $(k get configmap feedmill-deploy-lock --no-headers 2>/dev/null | sed 's/.* //') old). Then:
  $unlock"
}

release_lock() {
  ((locked)) || return 0
  k delete configmap feedmill-deploy-lock --ignore-not-found >/dev/null 2>"$work/error" ||
    complain "the lock stays, and keeps others from deploying ($(error)). Once the cluster answers:
  $unlock"
}

# A password for each user of the broker that the manifests name (NAME-broker-user-USER), if there is none yet. Nobody is
# shown it, and no process has it among its arguments.
make_broker_users() {
  local name
  for name in $(facts secret | cut -f 1 | grep -E '(^|-)broker-user-[a-z]+$'); do
    if k get secret "$name" -o name >/dev/null 2>"$work/error"; then continue; fi
    not_found || stop "the secret $name can't be looked for: $(error)"
    head -c 24 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' >"$work/password"
    k create secret generic "$name" --from-literal=username="${name##*-}" --from-file=password="$work/password" >/dev/null 2>"$work/error" ||
      stop "the secret $name can't be made: $(error)"
    rm "$work/password"
    say "secret/$name created, with a new password"
  done
}
