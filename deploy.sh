#!/usr/bin/env bash
# Deploys Feedmill to Kubernetes. Here are the decisions; the values are in k8s/ (kustomize, and overlays/ENV/deploy.env).
# Of the manifests this knows three labels (app.kubernetes.io/part-of, feedmill.dev/phase, feedmill.dev/fetch-type) and
# what "ready" means for each kind of object. docs/how-to/kubernetes.md explains every check, -h every option.
#   scripts/deploy/checks.sh   what must be true before     image.sh     the tag, the image, its digest
#   scripts/deploy/cluster.sh  kubectl, waiting, the lock,  rollback.sh  what was before, why it failed, the record
#                              passwords of the broker's users
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: ./deploy.sh -T queue-fetcher|batch-fetcher -e dev|staging|prod [-n | -b] [-t TAG] [-a] [-y]

  -T TYPE  queue-fetcher: fetchers that always run; batch-fetcher: a run by the clock. The other one is removed.
  -e ENV   environment: the values in k8s/overlays/ENV
  -n       dry run: checks everything, shows what would change if the cluster answers, prints the manifests on
           standard output and all else on standard error; needs no cluster, asks nothing, changes nothing
  -b       build the image and stop (nothing is pushed)
  -t TAG   deploy the image of this tag, which must be there; with -b, build it under this tag.
           Without -t the tag comes from git, and an image that isn't in the registry is built and pushed.
  -a       allow what is not committed or not pushed (never for prod)
  -y       don't ask (never for prod, where the word is to be typed)
  -h       this text

Exit codes: 0 done, 1 refused or failed (and rolled back), 2 wrong usage, 130 interrupted (and rolled back).
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
  [[ $environment =~ ^(dev|staging|prod)$ ]] || wrong_usage "-e must be dev, staging or prod"
  ((!dry || !build)) || wrong_usage "-n and -b exclude each other"
  [[ -z $given_tag || $given_tag =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]] || wrong_usage "-t: a tag is made of letters, digits, _ . and -"
  [[ $given_tag != latest ]] || wrong_usage "-t latest: what means another image tomorrow can't be rolled back to"
  [[ $environment != prod ]] || ((!allow_dirty)) || wrong_usage "-a is not for prod: what runs there must be in the repository"
  [[ $environment != prod ]] || ((!yes)) || wrong_usage "-y is not for prod: there the word is to be typed"
}

show_changes() {
  local code=0
  step "What changes ($type, $image:$tag, context ${context:-none}, namespace $NAMESPACE)"
  if [[ -z $context ]]; then say "Not compared: there is no cluster to ask."; return; fi
  if ((first)); then say "Everything is new: there is no namespace $NAMESPACE."; return; fi
  k diff -f "$work/manifests" -l "$NO_JOB" || code=$?   # values of Secrets are shown as asterisks
  ((code <= 1)) || refuse "kubectl diff failed (see above)"
  ((code > 0)) || say "No object differs."
  objects 2-migrate | sed -n 's/^job/Runs again: &/p'
  each_of_other get -o name | sed 's/^/Removed at the end: /' || refuse "objects of $other can't be listed (see above)"
  name_leftovers
}

ask() {
  local answer=
  ((!yes)) || return 0
  if [[ $environment == prod ]]; then
    printf '\nThis is prod. Type prod to go on: '
    read -r answer || true
    [[ $answer == prod ]] || stop "not confirmed; nothing was changed"
  else
    printf '\nDeploy to %s? [y/N] ' "$environment"
    read -r answer || true
    [[ $answer =~ ^[yY] ]] || stop "not confirmed; nothing was changed"
  fi
}

# A note in git of what staging and prod were given: made now, pushed once it is true, taken back if it doesn't become so.
tag_commit() {
  [[ $environment != dev ]] || return 0
  git_tag="deploy/$environment/$stamp"
  GIT_COMMITTER_NAME=$who GIT_COMMITTER_EMAIL=$who git tag --annotate "$git_tag" "$commit" \
    --message "$type, image $image:$tag" 2>"$work/error" || stop "git could not tag the commit: $(error)"
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
  parse_options "$@"

  root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
  cd "$root"
  # shellcheck source=scripts/deploy/cluster.sh
  source scripts/deploy/cluster.sh
  # shellcheck source=scripts/deploy/checks.sh
  source scripts/deploy/checks.sh
  # shellcheck source=scripts/deploy/image.sh
  source scripts/deploy/image.sh
  # shellcheck source=scripts/deploy/rollback.sh
  source scripts/deploy/rollback.sh

  values=k8s/overlays/$environment/deploy.env
  work='' child='' context='' digest='' stage='' outcome=failed reason='' git_tag='' locked=0 images=() to_push=() first=0 refusals=0
  declare -gA digests=()
  # The record and the tag of git are called by the second: a deploy that follows within one waits for the next.
  while stamp=$(date -u +%Y%m%d-%H%M%S) && [[ -e .feedmill/deploys/$environment-$stamp.json ]]; do sleep 0.1; done
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
  read_values
  check_tree
  if ((!build)); then
    check_pushed
    check_context
  fi
  check_variables
  check_secrets now
  check_manifests
  if ((build)); then
    build_images "${images[@]}"
    return
  fi
  check_image

  show_changes
  if ((dry)); then
    cat "$work/manifests" >&3
    printf '\nDry run: nothing was changed. Reasons for which a deploy would stop: %s.\n' "$refusals"
    return
  fi
  ask

  step "Deploying"
  take_lock
  save_state
  publish_images
  tag_commit
  deploy
  outcome=incomplete   # the new type is up: from here on nothing is rolled back
  # In the foreground: until the pods have drained, they need the network policies that go next.
  each_of_other delete --cascade=foreground --timeout="$DELETE_TIMEOUT" || stop "$type is up, but objects of $other could not be removed (see above): deploy again"
  outcome=deployed
  push_git_tag
  step "Deployed: $type, $image:$tag, in $SECONDS s"
}

main "$@"
