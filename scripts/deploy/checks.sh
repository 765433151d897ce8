# shellcheck shell=bash disable=SC2154,SC2034
# What must be true before a deploy. deploy.sh calls these in the order in which they stand here.

# All that is wrong with the manifests, with the settings in them and with deploy.env, at once.
check_manifests() {
  local problems
  kubectl kustomize "$overlay/$type" >"$work/manifests" 2>"$work/error" || stop "${overlay#"$root"/}/$type can't be rendered: $(error)"
  manifests facts "${overlay#"$root"/}" "$type" <"$work/manifests" >"$work/facts" || stop "the manifests can't be read (see above)"
  mapfile -t problems < <(facts problem)
  if command -v kubernetes-validate >/dev/null; then
    judged=1
    kubernetes-validate --strict --quiet --no-warn "$work/manifests" >"$work/error" 2>&1 || problems+=("$(cat "$work/error")")
  fi
  ((${#problems[@]} == 0)) || stop "the manifests are wrong:$(printf '\n  %s' "${problems[@]}")"
  mapfile -t images < <(facts ours)
  image=${images[0]}
  ((!judged)) || say "The manifests fit Kubernetes' schemas. (Fields of custom resources are checked by the cluster only.)"
  [[ $RULES != prod ]] || facts tagged | sed 's/^/Not pinned by a digest, so a node may pull another image tomorrow (make pin-images): /'
}

# By what a clone knows of its remotes: a deploy must not need the git server. A shallow clone of a release's tag knows no
# branches: there the tag stands for them (and the image of a release is never built here).
check_clone() { # DIRECTORY
  local changes branches at="${1#"$root"}"
  at=${at:+ in $1}
  clone_commit=$(git -C "$1" rev-parse --verify HEAD 2>"$work/error") || clone_commit=unknown
  ((!allow_dirty)) || return 0
  [[ $clone_commit != unknown ]] || { refuse "git knows no commit$at: $(error)"; return 0; }
  changes=$(git -C "$1" status --porcelain .)
  [[ -z $changes ]] || refuse "there are changes that are not committed$at (commit them; -a allows them, except by prod's rules):"$'\n'"$(head -n 5 <<<"$changes")"
  ((!build)) || return 0
  [[ $(git -C "$1" rev-parse --is-shallow-repository) != true || -z $(git -C "$1" tag --points-at HEAD --list 'v[0-9]*') ]] || return 0
  branches=$(git -C "$1" for-each-ref --contains HEAD --format='%(refname:lstrip=3)' refs/remotes)
  if [[ -z $branches ]]; then
    refuse "commit ${clone_commit::12}$at is not pushed (git push; if somebody else pushed it: git fetch)"
  elif [[ $BRANCH != any ]] && ! grep -qxF "$BRANCH" <<<"$branches"; then
    refuse "commit ${clone_commit::12}$at is pushed, but not to the branch $BRANCH, from which alone $environment is deployed"
  fi
}

check_context() {
  context=$(kubectl config current-context 2>/dev/null) || context=
  if [[ ! $context =~ ^($CONTEXT)$ ]]; then
    refuse "kubectl's context is ${context:-not set}, but $environment is where the context is called $CONTEXT ($values)"
    context=   # and a dry run does not even look there
  elif answers 10s; then
    ! not_found || first=1
  else
    away
  fi
}

# What an operator makes of an object of ours is there only once that object is ready.
check_secrets() { # now | ready
  local names
  mapfile -t names < <(facts "secret	$1")
  [[ -z $context || ${#names[@]} -eq 0 ]] || k get secret "${names[@]}" -o name >/dev/null 2>"$work/error" || ! not_found ||
    refuse "secrets are missing in the namespace $NAMESPACE (docs/how-to/kubernetes.md):"$'\n'"$(cat "$work/error")"
}

# Before there is a namespace, the server knows the kinds only. A Job can't be changed, so it is tried as a new one: that
# there is one of its name is said last.
check_server() {
  local where=server
  [[ $context ]] || return 0
  ((!first)) || where=client
  if ! k apply --dry-run=$where -f "$work/manifests" -l "$NO_JOB" >/dev/null 2>"$work/error"; then
    reject "the cluster would not take the manifests:"$'\n'"$(cat "$work/error")"
  elif ((!first)); then
    judged=1
    k create --dry-run=server -f "$work/manifests" -l "$JOB" >/dev/null 2>"$work/error" || exists ||
      reject "the cluster would not take the migration:"$'\n'"$(cat "$work/error")"
  fi
}
reject() { if answers 5s; then rejected=1; refuse "$1"; else away; fi; }
away() { refuse "the cluster of context $context does not answer: $(error)"; context=; }
