# shellcheck shell=bash disable=SC2154,SC2034
# What was before, why a deploy failed, the way back, and the record of it.

declare -A revision=()   # of each Deployment that there was
declare -A generation_before=()   # of each database that there was

# What a rollback needs, by phase: of Deployments the revision; of all objects what was last applied (before.PHASE/), and
# which are new (services, and foundations of this fetch type).
save_state() {
  local phase object live mine lost=()
  mine=$(objects 1-foundation "$type")
  for phase in 1-foundation 3-services; do
    mkdir "$work/before.$phase"
    : >"$work/new.$phase"
    for object in $(objects "$phase"); do
      if live=$(k get "$object" -o 'jsonpath={.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration}' 2>"$work/error"); then
        [[ -z $live ]] || printf '%s\n' "$live" >"$work/before.$phase/${object/\//=}.json"
        case $phase/$object in
          3-services/deployment/*) revision[$object]=$(k get "$object" -o 'jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}') ;;
          */namespace/*) ;;   # often made by hand, and nothing of it is worth a word
          *) [[ $live ]] || lost+=("$object") ;;
        esac
        [[ $object != cluster.*.postgresql.cnpg.io/* ]] ||
          generation_before[$object]=$(k get "$object" -o 'jsonpath={.metadata.generation}')
      elif not_found; then
        if [[ $phase == 3-services ]] || grep -qxF "$object" <<<"$mine"; then echo "$object" >>"$work/new.$phase"; fi
      else
        stop "$object can't be read, so it could not be rolled back: $(error)"
      fi
    done
  done
  ((${#lost[@]} == 0)) ||
    complain "what these were is not written on them (applied by --server-side?), so a rollback leaves them as this deploy makes them: ${lost[*]}"
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

# Back to what was, as far as the deploy came: Deployments to the revision that they had; the rest (CronJobs, Services, …)
# has no revisions and is applied as it last was. New foundations that all share stay: broker and database hold data.
roll_back() {
  local object phase new failed=0
  step "Rolling back"
  [[ $stage != 2-migrate ]] || end_migration || failed=1
  if [[ $stage == 3-services ]]; then
    for object in "${!revision[@]}"; do
      k rollout undo "$object" ${revision[$object]:+--to-revision="${revision[$object]}"} || failed=1
    done
    apply_as_before 3-services || failed=1
  fi
  for phase in 3-services 1-foundation; do   # until new fetchers have drained, they need their network policies
    mapfile -t new <"$work/new.$phase"
    ((${#new[@]} == 0)) || k_wait delete "${new[@]}" --ignore-not-found --cascade=foreground --timeout="$DELETE_TIMEOUT" || failed=1
  done
  apply_as_before 1-foundation || failed=1
  if [[ $stage == 3-services ]]; then
    for object in "${!revision[@]}"; do await "$object" "$ROLLOUT_SECONDS" || failed=1; done
  fi
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
  [[ $(ls "$work/before.$1") ]] || return 0
  if k apply -f "$work/before.$1"; then return 0; fi   # (in a trap, a bare return gives what was before the trap)
  for file in "$work/before.$1"/*; do   # once more, to name those that fail
    k apply -f "$file" >/dev/null 2>"$work/error" && continue
    object=${file##*/} object=${object%.json}
    complain "${object/=//} could not be applied as it was: $(error)"
    failed=1
  done
  return "$failed"
}

# The same fields in a file here, and in a ConfigMap in the cluster, which keeps the last 20.
record() {
  local field fields file=".feedmill/deploys/$environment-$stamp.json" name="feedmill-deploy-$stamp" separator='{' old
  fields=("at=$started" "seconds=$SECONDS" "who=$who" "environment=$environment" "type=$type" "image=$image:$tag${digest:+@$digest}"
    "commit=$commit" "context=$context" "outcome=$outcome" "reason=${reason//[$'\n"\\']/ }")
  mkdir -p "${file%/*}"
  for field in "${fields[@]}"; do
    printf '%s"%s": "%s"' "$separator" "${field%%=*}" "${field#*=}"
    separator=', '
  done >"$file"
  printf '}\n' >>"$file"
  if ! { k create configmap "$name" "${fields[@]/#/--from-literal=}" && k label configmap "$name" feedmill.dev/record=deploy; } >/dev/null; then
    complain "no record could be left in the cluster; there is one in $file"
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
  ((!locked)) || k delete configmap feedmill-deploy-lock --ignore-not-found >/dev/null
  [[ -z $work ]] || rm -rf "$work"
  exit "$code"
}
