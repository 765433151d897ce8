#!/usr/bin/env bash
# Deploys Feedmill to Kubernetes. Here are the decisions; the values are in k8s/ (kustomize, and overlays/ENV/deploy.env).
# Of the manifests this knows three labels (app.kubernetes.io/part-of, feedmill.dev/phase, feedmill.dev/fetch-type) and
# what "ready" means for each kind of object. docs/how-to/kubernetes.md explains every check, -h every option.
#   scripts/deploy/checks.sh    what must be true before     image.sh      the tag, the image, its digest
#   scripts/deploy/cluster.sh   kubectl, waiting, the lock   rollback.sh   what was before, why it failed, the record
#   scripts/deploy/manifests.py what the manifests say
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: ./deploy.sh -T queue-fetcher|batch-fetcher -e dev|staging|prod|PATH [-n | -b] [-t TAG] [-a] [-y]

  -T TYPE  queue-fetcher: fetchers that always run; batch-fetcher: a run by the clock. The other one is removed.
  -e ENV   environment: the values in k8s/overlays/ENV, or in a directory of yours (./mine, ../infra/feedmill)
  -n       dry run: checks everything, shows what would change if the cluster answers, prints the manifests on
           standard output and all else on standard error; needs no cluster, asks nothing, changes nothing
  -b       build the image and stop (nothing is pushed)
  -t TAG   deploy the image of this tag, which must be there; with -b, build it under this tag.
           Without -t the tag comes from git, and an image that isn't in the registry is built and pushed
           (but for a release, v0.2.0 in git and 0.2.0 as a tag: its image comes from CI).
  -a       allow what is not committed or not pushed (not under the rules of prod)
  -y       don't ask (not under the rules of prod, where the environment's name is to be typed)
  -h       this text

Exit codes: 0 done, 1 refused or failed (and rolled back), 2 wrong usage, 130 interrupted (and rolled back).
Of a dry run: 0 the manifests are right (what else would stop a deploy is said), 1 they are wrong, or the cluster would
not take them, 2 wrong usage, 3 nobody looked at their fields (no cluster answers, and no kubernetes-validate).
USAGE
}

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
complain() { printf 'deploy.sh: %s\n' "$*" >&2; }
stop() { reason=$1; complain "$1"; exit "${2:-1}"; }
wrong_usage() { complain "$1 (./deploy.sh -h)"; exit 2; }
# What is about this moment or machine stops a deploy; a dry run says so and goes on. Wrong manifests stop both.
refuse() {
  ((dry)) || stop "$1"
  refusals=$((refusals + 1))
  say "A deploy would stop here: $1"
}

parse_options() {
  local option
  while getopts :T:e:t:nbayh option; do
    case $option in
      T) type=$OPTARG ;;
      e) environment=$OPTARG ;;
      t) given_tag=$OPTARG ;;
      n) dry=1 ;;
      b) build=1 ;;
      a) allow_dirty=1 ;;
      y) yes=1 ;;
      h) usage; exit 0 ;;
      :) wrong_usage "-$OPTARG needs a value" ;;
      *) wrong_usage "there is no option -$OPTARG" ;;
    esac
  done
  shift $((OPTIND - 1))
  (($# == 0)) || wrong_usage "what is \"$1\"?"
  case $type in
    queue-fetcher) other=batch-fetcher ;;
    batch-fetcher) other=queue-fetcher ;;
    *) wrong_usage "-T must be queue-fetcher or batch-fetcher" ;;
  esac
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
  [[ $RULES != prod ]] || ((!allow_dirty)) || wrong_usage "-a is not for $environment: what runs there must be in the repository"
  [[ $RULES != prod ]] || ((!yes)) || wrong_usage "-y is not for $environment: there its name is to be typed"
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
  objects 2-migrate | sed -n 's/^job/Runs again: &/p'
  take_inventory || { refuse "what is there can't be listed (see above)"; return; }
  of_other | sed 's/^/Removed at the end: /'
  leftovers | sed 's/.*/No longer in the manifests, left alone: & (kubectl delete it once nothing needs it)/'
}

ask() {
  local answer=
  ((!yes)) || return 0
  if [[ $RULES == prod ]]; then
    printf '\nThis is %s. Type %s to go on: ' "$environment" "$environment"
    read -r answer || true
    [[ $answer == "$environment" ]] || stop "not confirmed; nothing was changed"
  else
    printf '\nDeploy to %s? [y/N] ' "$environment"
    read -r answer || true
    [[ $answer =~ ^[yY] ]] || stop "not confirmed; nothing was changed"
  fi
}

# A note in git of what was deployed (not by the rules of dev): made now, pushed once it is true, taken back if it doesn't become so.
tag_commit() {
  [[ $RULES != dev ]] || return 0
  git_tag="deploy/$environment/$stamp"
  GIT_COMMITTER_NAME=$who GIT_COMMITTER_EMAIL=$who git tag --annotate "$git_tag" "$commit" \
    --message "$type, image $image:$tag$digest" 2>"$work/error" || stop "git could not tag the commit: $(error)"
}

push_git_tag() {
  local remote
  [[ $git_tag ]] || return 0
  remote=$(git remote | grep -x origin || git remote | head -n 1)
  git push --quiet "$remote" "refs/tags/$git_tag" 2>"$work/error" || complain "the tag $git_tag stays in this clone: $(error)"
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

deploy() {
  apply_phase 1-foundation "$FOUNDATION_SECONDS"
  make_broker_users
  check_secrets ready
  # A Job can't be changed, so the former one goes. Migrations go forward only, and each leaves the tables usable for the
  # release before it: what runs meanwhile, and after a rollback, keeps working.
  k_wait delete job -l "$OURS,feedmill.dev/phase=2-migrate" --ignore-not-found --timeout="$DELETE_TIMEOUT" || stop "the former migration can't be removed"
  apply_phase 2-migrate "$MIGRATE_SECONDS"
  apply_phase 3-services "$ROLLOUT_SECONDS"
}

main() {
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) || { complain "bash 4.4 or newer is needed; this is $BASH_VERSION"; exit 1; }
  type='' environment='' given_tag='' dry=0 build=0 allow_dirty=0 yes=0
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
  parse_options "$@"

  cd "$root"
  # shellcheck source=scripts/deploy/cluster.sh
  source scripts/deploy/cluster.sh
  # shellcheck source=scripts/deploy/checks.sh
  source scripts/deploy/checks.sh
  # shellcheck source=scripts/deploy/image.sh
  source scripts/deploy/image.sh
  # shellcheck source=scripts/deploy/rollback.sh
  source scripts/deploy/rollback.sh

  work='' child='' context='' digest='' stage='' outcome=failed reason='' git_tag='' locked=0 images=() to_push=() first=0
  refusals=0 judged=0 rejected=0
  declare -gA digests=()
  stamp=$(date -u +%Y%m%d-%H%M%S)
  started=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  exec 3>&1
  ((!dry)) || exec 1>&2   # only the manifests go to standard output
  exec 4>&1 5>&2          # a signal may come while a command's words go to a file
  trap finish EXIT
  trap 'exec 2>&5; stop "interrupted" 130' INT TERM HUP
  work=$(cd "$(mktemp -d)" && pwd -P)

  step "Checks ($type to $environment)"
  check_tools
  who=$(git config user.email || printf '%s@%s' "$(id -un 2>/dev/null || id -u)" "${HOSTNAME:-unknown}")
  check_manifests
  check_tree
  if ((build)); then
    build_images "${images[@]}"
    return
  fi
  check_context
  check_secrets now
  check_server
  check_image

  show_changes
  if ((dry)); then
    cat "$work/manifests" >&3
    printf '\nDry run: nothing was changed. Reasons for which a deploy would stop: %s.\n' "$refusals"
    ((!rejected)) || exit 1
    ((judged)) || exit 3
    return
  fi
  ask

  step "Deploying"
  unlock="kubectl delete configmap feedmill-deploy-lock --context=$context --namespace=$NAMESPACE"
  take_lock
  save_state
  publish_images
  tag_commit
  deploy
  outcome=incomplete   # the new type is up: from here on nothing is rolled back
  remove_other || stop "$type is up, but objects of $other could not be removed (see above): deploy again"
  outcome=deployed
  remove_old_config_maps
  push_git_tag
  step "Deployed: $type, $image:$tag, in $SECONDS s"
}

main "$@"
