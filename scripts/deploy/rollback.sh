# shellcheck shell=bash disable=SC2154,SC2034
# What was before, why a deploy failed, the way back, and the record of it.

# What a way back needs: what was last applied (before/PHASE/), and which objects are new: services, and foundations of this
# fetch type. Broker and database are never taken back: an older image on newer data can lose it.
save_state() {
  local lost older
  k get -f "$work/manifests" --ignore-not-found -o json >"$work/live" || stop "what is there can't be read, so it could not be rolled back (see above)"
  mkdir -p "$work/before"
  python before "$work/manifests" "$work/before" <"$work/live" >>"$work/facts" || stop "what is there can't be kept, so it could not be rolled back (see above)"
  older=$(facts older | tr '\t' ' ')
  [[ -z $older ]] || stop "an older image than it runs with may not read its data, so nothing was changed: $older"
  lost=$(facts lost | paste -s -d ' ' -)
  [[ -z $lost ]] || complain "what these were is not written on them (applied by --server-side?), so a rollback leaves them as this deploy makes them: $lost"
}

# is_changed SERVER: whether this deploy has changed it. One that can't be asked for counts as changed.
is_changed() { facts server | grep -F "$1	" >/dev/null && ! facts server | grep -xF "$1	$(generation_of "$1" 2>/dev/null)" >/dev/null; }

changed_servers() {
  local object
  for object in $(facts server | cut -f 1); do ! is_changed "$object" || printf ' %s' "$object"; done
}

# Why an object isn't ready: what it says itself, its pods, the last words of the newest one that isn't, the warnings in the namespace.
explain() {
  local selector='' pods='' pod
  # shellcheck disable=SC2016  # Go templates
  local labels='{{range $name, $value := .spec.selector.matchLabels}}{{$name}}={{$value}},{{end}}' unready='{{range .items}}{{$pod := .metadata.name}}{{if not .status.containerStatuses}}{{$pod}}: {{.status.phase}}{{range .status.conditions}}{{with .message}} {{.}}{{end}}{{end}}{{"\n"}}{{end}}{{range .status.containerStatuses}}{{if not .ready}}{{$pod}}:{{with .state.waiting}} {{.reason}} {{.message}}{{end}}{{with .state.terminated}} exit code {{.exitCode}} ({{.reason}}){{end}}{{with .lastState.terminated}}, before that exit code {{.exitCode}} ({{.reason}}){{end}}{{"\n"}}{{end}}{{end}}{{end}}'
  # shellcheck disable=SC2016
  local status='{{with .status}}{{with .phase}}{{.}}{{end}}{{with .phaseReason}}: {{.}}{{end}}{{"\n"}}{{range .conditions}}{{.type}} {{.status}}{{with .reason}} {{.}}{{end}}{{with .message}}: {{.}}{{end}}{{"\n"}}{{end}}{{end}}'
  step "Why $1 is not ready"
  k get "$1" -o "go-template=$status" 2>/dev/null || true
  case $1 in
    rabbitmqcluster.*) selector=app.kubernetes.io/name=${1#*/} ;;
    cluster.*.postgresql.cnpg.io/*) selector=cnpg.io/cluster=${1#*/} ;;
    job/*) selector=job-name=${1#job/} ;;
    deployment/*) selector=$(k get "$1" -o "go-template=$labels" 2>/dev/null) || true ;;
  esac
  if [[ $selector ]]; then
    pods=$(k get pods -l "${selector%,}" --sort-by=.metadata.creationTimestamp -o "go-template=$unready") || true
    say "${pods:-It has no pod that runs and is not ready.}"
    pod=$(tail -n 1 <<<"$pods" | cut -d : -f 1)
    if [[ $pod ]]; then k logs "$pod" --previous --tail=20 2>/dev/null || k logs "$pod" --tail=20 || true; fi
    [[ $pods != *"exit code 78"* ]] ||
      say "Exit code 78: the configuration can't work, and a restart won't help. The log names the variable."
  fi
  k get events --field-selector=type=Warning --sort-by=.metadata.creationTimestamp | tail -n 10 || true
}

# Broker or database is on its way and not ready yet, perhaps only slow: a node may take half an hour to hand over. What
# they run with stays with them.
stop_halfway() {
  outcome=stopped
  complain "nothing is rolled back:$1 is as this deploy made it, and may only be slow. What ran before runs on, and migrations have not begun.
  To look:  kubectl get pods,events --context=$context --namespace=$NAMESPACE
  Once it is ready, deploy again, the same or a mended release. Don't deploy an older one: an older image may not read the newer data."
}

# Back to what was, as far as the deploy came: all objects are applied as they last were. New foundations that all share stay.
roll_back() {
  local object phase new failed=0 servers
  servers=$(changed_servers)
  [[ $stage != 1-foundation || -z $servers ]] || { stop_halfway "$servers"; return; }
  step "Rolling back"
  [[ $stage != 2-migrate ]] || end_migration || failed=1
  [[ $stage != 3-services ]] || apply_as_before 3-services || failed=1
  for phase in 3-services 1-foundation; do   # until new fetchers have drained, they need their network policies
    mapfile -t new < <(facts new | sed -n "s/^$phase	//p")
    ((${#new[@]} == 0)) || k_wait delete "${new[@]}" --ignore-not-found --cascade=foreground --timeout="$DELETE_TIMEOUT" || failed=1
  done
  apply_as_before 1-foundation || failed=1
  if [[ $stage == 3-services ]]; then
    for object in $(objects 3-services); do
      [[ ! -e $work/before/3-services/${object/\//=}.json ]] || await "$object" "$ROLLOUT_SECONDS" || failed=1
    done
  fi
  [[ -z $servers ]] || say "Not taken back, since it holds data:$servers"
  if ((failed)); then
    outcome=rollback-failed
    complain "the rollback failed too (see above); look at kubectl get all --context=$context --namespace=$NAMESPACE"
  else
    outcome=rolled-back
    say "Rolled back: what ran before runs. Migrations are not undone (docs/how-to/kubernetes.md)."
  fi
}

# A Job would go on trying. Suspended, it ends the pod that runs and keeps those that failed, and their logs.
end_migration() {
  local object failed=0
  for object in $(objects 2-migrate); do
    if k patch "$object" --type=merge -p '{"spec":{"suspend":true}}' >/dev/null 2>"$work/error"; then
      say "$object is suspended: it tries no more, and its pods that failed stay to be read."
    elif ! not_found; then
      complain "$object could not be suspended and may go on: $(error)"
      failed=1
    fi
  done
  return "$failed"
}

apply_as_before() { # PHASE
  local file object failed=0
  [[ -d $work/before/$1 ]] || return 0
  if k apply -f "$work/before/$1"; then return 0; fi   # (in a trap, a bare return gives what was before the trap)
  for file in "$work/before/$1"/*; do   # once more, to name those that fail
    k apply -f "$file" >/dev/null 2>"$work/error" && continue
    object=${file##*/} object=${object%.json}
    complain "${object/=//} could not be applied as it was: $(error)"
    failed=1
  done
  return "$failed"
}

# A ConfigMap in the cluster, which keeps the last 20.
record() {
  local fields name="feedmill-deploy-$stamp" old
  fields=("at=$started" "seconds=$SECONDS" "who=$who" "environment=$environment" "type=$type" "image=$image:$tag$digest"
    "commit=$commit" "manifests=$manifests_commit" "context=$context" "outcome=$outcome" "reason=$reason")
  if ! { k create configmap "$name" "${fields[@]/#/--from-literal=}" && k label configmap "$name" feedmill.dev/record=deploy; } >/dev/null; then
    complain "no record could be left in the cluster: ${fields[*]}"
    return
  fi
  mapfile -t old < <(k get configmaps -l feedmill.dev/record=deploy --sort-by=.metadata.name -o name)
  ((${#old[@]} <= 20)) || k delete "${old[@]:0:${#old[@]}-20}" >/dev/null
}

# Whatever ends the script ends here. What failed after the first change is rolled back.
finish() {
  local code=$?
  exec 1>&4 2>&5
  trap '' INT TERM HUP   # a second Ctrl-C must not interrupt the way back
  set +e
  [[ -z $child ]] || kill "$child" 2>/dev/null
  if [[ $stage ]]; then
    reason=${reason:-$([[ $outcome == deployed ]] || echo 'a command failed')}
    [[ $outcome != failed ]] || roll_back
    record
  fi
  if [[ $git_tag && $outcome != deployed ]]; then git tag --delete "$git_tag" >/dev/null; fi
  release_lock
  [[ -z $work ]] || rm -rf "$work"
  exit "$code"
}
