# shellcheck shell=bash disable=SC2154,SC2034
# What was before, why a deploy failed, the way back, and the record of it.

# What a way back needs: what was last applied (before/PHASE/), and which objects are new: services, and foundations of this
# fetch type. Taken before the question, and again once nobody else can deploy.
save_state() {
  local older
  rm -rf "$work/before"
  k get -f "$work/manifests" --ignore-not-found -o json >"$work/live" &&
    manifests before "$work/manifests" "$work/before" <"$work/live" >"$work/facts-before" ||
    { refuse "what is there can't be read, so it could not be rolled back (see above)"; return; }
  older=$(facts older)
  [[ -z $older ]] || refuse "an older image than it runs with may not read its data: $older"
}

# Whether this deploy has changed a broker or database. One that can't be asked for counts as changed.
is_changed() { [[ $(facts "server	$1") != "$(generation_of "$1" 2>/dev/null)" ]]; } # OBJECT
changed_servers() { for object in $(facts server | cut -f 1); do ! is_changed "$object" || printf ' %s' "$object"; done; }

# Why an object isn't ready: its conditions, its pods, the last words of the newest one that isn't ready, the warnings.
explain() { # OBJECT
  local pods pod
  step "Why $1 is not ready"
  k get "$1" -o 'jsonpath={range .status.conditions[*]}{.type} {.status} {.reason} {.message}{"\n"}{end}' || return 0
  pods=$(k get pods --sort-by=.metadata.creationTimestamp | grep -E "^(NAME|${1#*/}-)") || true
  say "$pods"
  for pod in $(sed 1d <<<"$pods" | grep -vE ' ([0-9]+)/\1 |Completed' | tail -n 1 | cut -d ' ' -f 1); do
    k get pod "$pod" -o 'jsonpath={range .status.containerStatuses[*]}{.name}: {.state} before: {.lastState}{"\n"}{end}' || true
    k logs "$pod" --previous --tail=20 2>/dev/null || k logs "$pod" --tail=20 || true
  done
  k get events --field-selector=type=Warning --sort-by=.metadata.creationTimestamp | tail -n 10 || true
}

# Back to what was, as far as the deploy came: all objects are applied as they last were. New foundations that all share
# stay. A broker or database that is not ready yet may only be slow: a node may take half an hour to hand over.
roll_back() {
  local object phase new failed=0 tries=24 servers look="kubectl get all --context=$context --namespace=$NAMESPACE"
  until answers 5s; do   # it may be back in a minute
    ((tries--)) || { complain "nothing is rolled back: the cluster does not answer ($(error)). Once it does, deploy again."; return 1; }
    sleep "${SETTLE_SECONDS:-5}"
  done
  servers=$(changed_servers)
  if [[ $stage == 1-foundation && $servers ]]; then
    outcome=stopped
    complain "nothing is rolled back:$servers is as this deploy made it, and may only be slow. What ran before runs on, and migrations have not begun.
  To look:  $look
  Once it is ready, deploy again, the same or a mended release. Don't deploy an older one: an older image may not read the newer data."
    return 0
  fi
  step "Rolling back"
  [[ $stage != 2-migrate ]] || end_migration || failed=1
  [[ $stage != 3-services ]] || apply_as_before 3-services || failed=1
  for phase in 3-services 1-foundation; do   # until new fetchers have drained, they need their network policies
    mapfile -t new < <(facts "new	$phase")
    ((${#new[@]} == 0)) || k_wait delete "${new[@]}" --ignore-not-found --cascade=foreground --timeout="$DELETE_TIMEOUT" || failed=1
  done
  apply_as_before 1-foundation || failed=1
  for object in $([[ $stage != 3-services ]] || objects 3-services); do
    [[ ! -e $work/before/3-services/${object/\//=}.json ]] || await "$object" "$ROLLOUT_SECONDS" || failed=1
  done
  [[ -z $servers ]] || say "Not taken back, since it holds data:$servers"
  outcome=rollback-failed
  if ((failed)); then complain "the rollback failed too (see above); look at $look"; return 0; fi
  outcome=rolled-back
  say "Rolled back: what ran before runs. Migrations are not undone (docs/how-to/kubernetes.md)."
}

apply_as_before() { [[ ! -d $work/before/$1 ]] || k apply -f "$work/before/$1"; }   # PHASE

# A Job would go on trying. Suspended, it ends the pod that runs and keeps those that failed, and their logs.
end_migration() {
  local object
  for object in $(objects 2-migrate); do
    k patch "$object" --type=merge -p '{"spec":{"suspend":true}}' >/dev/null 2>"$work/error" &&
      say "$object is suspended: it tries no more, and its pods that failed stay to be read." && continue
    not_found || { complain "$object could not be suspended and may go on: $(error)"; return 1; }
  done
}

# A ConfigMap in the cluster, which keeps the last 20.
record() {
  local fields name="feedmill-deploy-$stamp" old
  fields=("at=$started" "seconds=$SECONDS" "who=$who" "environment=$environment" "type=$type" "image=$deployed"
    "commit=$commit" "manifests=$clone_commit" "context=$context" "outcome=$outcome" "reason=$reason")
  { k create configmap "$name" "${fields[@]/#/--from-literal=}" && k label configmap "$name" feedmill.dev/record=deploy; } >/dev/null ||
    { complain "no record could be left in the cluster: ${fields[*]}"; return; }
  mapfile -t old < <(k get configmaps -l feedmill.dev/record=deploy --sort-by=.metadata.name -o name)
  ((${#old[@]} <= 20)) || k delete "${old[@]:0:${#old[@]}-20}" >/dev/null
}

# Whatever ends the script ends here. What failed after the first change is rolled back.
finish() {
  local code=$? child
  exec 1>&4 2>&5
  trap '' INT TERM HUP   # a second Ctrl-C must not interrupt the way back
  set +e
  for child in $(jobs -p); do kill "$child" 2>/dev/null; done
  if [[ $stage ]]; then
    reason=${reason:-$([[ $outcome == deployed ]] || echo 'a command failed')}
    if [[ $outcome != failed ]] || roll_back; then record; fi
  fi
  release_lock
  [[ -z $work ]] || rm -rf "$work"
  exit "$code"
}
