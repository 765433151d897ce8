#!/usr/bin/env bash
# Deploys Feedmill to Kubernetes (docs/how-to/kubernetes.md). Here are the decisions; the values are in k8s/: kustomize, and
# overlays/ENV/deploy.env. Of the manifests this knows the labels app.kubernetes.io/part-of, feedmill.dev/phase and
# feedmill.dev/fetch-type, and what "ready" means for each kind of object.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: ./deploy.sh -T queue-fetcher|batch-fetcher -e dev|staging|prod|PATH [-n | -b] [-t TAG] [-a] [-y]

  -T TYPE  queue-fetcher: fetchers that always run; batch-fetcher: a run by the clock. The other one is removed.
  -e ENV   environment: the values in k8s/overlays/ENV, or in a directory of yours (./mine, ../infra/feedmill)
  -n       dry run: checks, prints the manifests (all else on standard error), asks and changes nothing; needs no cluster
  -b       build the image and stop (nothing is pushed)
  -t TAG   deploy the image of this tag, which must be there; with -b, build it. Without -t git names the tag, and an
           image that isn't in the registry is built and pushed (but not that of a release, which comes from CI).
  -a       allow what is not committed or not pushed (not under the rules of prod)
  -y       don't ask (not under the rules of prod)
  -h       this text

Exit codes: 0 done, 1 refused or failed (and rolled back), 2 wrong usage, 130 interrupted (and rolled back).
Of a dry run: 0 right (what else would stop a deploy is said), 1 wrong, or the cluster would not take them, 3 nobody looked
at the manifests' fields (no cluster answers, and no kubernetes-validate).
USAGE
}

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
complain() { printf 'deploy.sh: %s\n' "$*" >&2; }
stop() { reason=$1; complain "$1"; exit "${2:-1}"; }
wrong_usage() { complain "$1 (./deploy.sh -h)"; exit 2; }
refuse() { # for reasons of this moment or machine; wrong manifests stop a dry run, too
  ((dry)) || stop "$1"
  refusals=$((refusals + 1))
  say "A deploy would stop here: $1"
}

parse_options() {
  local option
  while getopts :T:e:t:nbayh option; do
    case $option in
      T) type=$OPTARG ;; e) environment=$OPTARG ;; t) given_tag=$OPTARG ;;
      n) dry=1 ;; b) build=1 ;; a) allow_dirty=1 ;; y) yes=1 ;;
      h) usage; exit 0 ;;
      :) wrong_usage "-$OPTARG needs a value" ;;
      *) wrong_usage "there is no option -$OPTARG" ;;
    esac
  done
  shift $((OPTIND - 1))
  (($# == 0)) || wrong_usage "what is \"$1\"?"
  [[ $type =~ ^(queue|batch)-fetcher$ ]] || wrong_usage "-T must be queue-fetcher or batch-fetcher"
  if [[ $type == queue-fetcher ]]; then other=batch-fetcher; else other=queue-fetcher; fi
  ((!dry || !build)) || wrong_usage "-n and -b exclude each other"
  [[ -z $given_tag || $given_tag =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]] || wrong_usage "-t: a tag is made of letters, digits, _ . and -"
  [[ $given_tag != latest ]] || wrong_usage "-t latest: what means another image tomorrow can't be rolled back to"
  case $environment in
    '') wrong_usage "-e must be dev, staging, prod, or the path of an overlay" ;;
    */* | .) overlay=$(cd "$environment" 2>/dev/null && pwd -P) || wrong_usage "-e: there is no directory $environment" ;;
    *) overlay=$root/k8s/overlays/$environment ;;
  esac
  environment=${overlay##*/}
  values=$overlay/deploy.env
  [[ -f $values && -d $overlay/$type && $environment =~ ^[A-Za-z0-9][A-Za-z0-9_-]*$ ]] ||
    wrong_usage "-e: $overlay is not the directory of an environment, with deploy.env and $type (docs/how-to/kubernetes.md)"
  read_values
  [[ $RULES == prod ]] || return 0
  ((!allow_dirty)) || wrong_usage "-a is not for $environment: what runs there must be in the repository"
  ((!yes)) || wrong_usage "-y is not for $environment: there its name is to be typed"
}

# Lines NAME=value and comments, read and never executed; manifests.py says what is wrong with them.
read_values() {
  local name value
  RULES='' CONTEXT='' NAMESPACE='' BRANCH='' FOUNDATION_SECONDS='' MIGRATE_SECONDS='' ROLLOUT_SECONDS=''
  while IFS='=' read -r name value || [[ $name ]]; do
    [[ ! $name =~ ^(RULES|CONTEXT|NAMESPACE|BRANCH|(FOUNDATION|MIGRATE|ROLLOUT)_SECONDS)$ ]] || printf -v "$name" %s "$value"
  done <"$values"
}

show_changes() {
  step "What changes ($type, $image:$tag, context ${context:-none}, namespace $NAMESPACE)"
  if [[ -z $context ]]; then say "Not compared: there is no cluster to ask."; return; fi
  if ((first)); then say "Everything is new: there is no namespace $NAMESPACE."; return; fi
  show_difference
  objects 2-migrate | sed 's/^/Runs again: /'
  save_state
  facts lost | sed 's/^/Not written on it what it was (--server-side?), so a rollback leaves it as this deploy makes it: /'
  take_inventory || { refuse "what is there can't be listed (see above)"; return; }
  facts remove | sed 's/^/Removed at the end: /'
  facts leftover | sed 's/.*/No longer in the manifests, left alone: & (kubectl delete it once nothing needs it)/'
}

ask() {
  local answer='' wanted=y
  ((!yes)) || return 0
  [[ $RULES != prod ]] || wanted=$environment
  printf '\nDeploy to %s? Type %s to go on: ' "$environment" "$wanted"
  read -r answer || true
  [[ $answer == "$wanted" ]] || stop "not confirmed; nothing was changed"
}

# A note in git of what was deployed (not by the rules of dev).
push_git_tag() {
  local name="deploy/$environment/$stamp"
  [[ $RULES != dev ]] || return 0
  { GIT_COMMITTER_NAME=$who GIT_COMMITTER_EMAIL=$who git tag --annotate "$name" "$commit" --message "$type, image $deployed" &&
    git push --quiet origin "refs/tags/$name"; } || complain "the tag $name is not pushed (see above)"
}

apply_phase() { # PHASE SECONDS
  local object
  [[ $(objects "$1") ]] || return 0
  step "Applying $1"
  stage=$1   # from here on there is something to roll back
  k apply -f "$work/manifests" -l "feedmill.dev/phase=$1" || stop "the cluster did not take all objects of $1 (see above)"
  for object in $(objects "$1"); do
    await "$object" "$2" || { explain "$object"; stop "$object failed, or was not ready within $2 s (see above)"; }
  done
}

main() {
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) || { complain "bash 4.4 or newer is needed; this is $BASH_VERSION"; exit 1; }
  type='' environment='' given_tag='' dry=0 build=0 allow_dirty=0 yes=0
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
  parse_options "$@"

  cd "$root"
  PATH+=:$root/.feedmill/venv/bin   # at the end: other tools want their own Python
  source scripts/deploy/cluster.sh
  source scripts/deploy/checks.sh
  source scripts/deploy/image.sh
  source scripts/deploy/rollback.sh

  work='' context='' stage='' outcome=failed reason='' holder='' first=0 refusals=0 judged=0 rejected=0 images=() missing=()
  declare -gA digests=()
  stamp=$(date -u +%Y%m%d-%H%M%S-%3N)   # records and tags of git are called by it
  started=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  exec 3>&1
  ((!dry)) || exec 1>&2   # only the manifests go to standard output
  exec 4>&1 5>&2          # a signal may come while a command's words go to a file
  trap finish EXIT
  trap 'exec 2>&5; stop "interrupted" 130' INT TERM HUP
  work=$(cd "$(mktemp -d)" && pwd -P)

  step "Checks ($type to $environment)"
  scripts/setup.sh --no-servers || stop "the Python environment that reads the manifests can't be made (see above)"
  who=$(git config user.email || printf '%s@%s' "$(id -un 2>/dev/null || id -u)" "${HOSTNAME:-unknown}")
  check_manifests
  choose_tag
  render
  check_clone "$root"
  commit=$clone_commit
  [[ $overlay == "$root"/* ]] || check_clone "$overlay"
  if ((build)); then build_images "${images[@]}"; return; fi
  check_context
  check_secrets now
  check_server
  check_image
  ((${#digests[@]} == 0)) || render

  show_changes
  if ((dry)); then
    cat "$work/manifests" >&3
    printf '\nDry run: nothing was changed. Reasons for which a deploy would stop: %s.\n' "$refusals"
    ((!rejected)) || exit 1
    ((judged)) || { say "Nobody looked at the manifests' fields: install kubernetes-validate (make setup), or use a context whose cluster answers."; exit 3; }
    return
  fi
  ask

  step "Deploying"
  take_lock
  save_state
  publish_images
  apply_phase 1-foundation "$FOUNDATION_SECONDS"
  make_broker_users
  check_secrets ready
  # A Job can't be changed, so the former one goes. Migrations go forward only, and each leaves the tables usable for the
  # release before it: what runs meanwhile, and after a rollback, keeps working.
  k_wait delete job -l "$OURS,$JOB" --ignore-not-found --timeout="$DELETE_TIMEOUT" || stop "the former migration can't be removed"
  apply_phase 2-migrate "$MIGRATE_SECONDS"
  apply_phase 3-services "$ROLLOUT_SECONDS"
  outcome=incomplete   # the new type is up: from here on nothing is rolled back
  remove_other || stop "$type is up, but objects of $other could not be removed (see above): deploy again"
  outcome=deployed
  remove_old_config_maps
  push_git_tag
  step "Deployed: $type, $deployed, in $SECONDS s"
}

main "$@"
