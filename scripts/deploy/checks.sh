# shellcheck shell=bash disable=SC2154,SC2034
# What must be true before a deploy. deploy.sh calls these in the order in which they stand here.

check_tools() {
  local tool
  for tool in kubectl git; do
    command -v "$tool" >/dev/null || stop "$tool is not installed, or not on the PATH"
  done
  if ((build)); then
    command -v docker >/dev/null || stop "docker is not installed, and -b builds with it"
  elif ! command -v docker >/dev/null && ! command -v crane >/dev/null && ! command -v skopeo >/dev/null; then
    refuse "docker is not installed: without it (or crane, or skopeo) nobody can look whether the image is there"
  fi
  scripts/setup.sh --no-servers || stop "the Python environment that reads the manifests can't be made (see above)"
}

# All that is wrong with the manifests, with the settings in them and with deploy.env, at once.
check_manifests() {
  local problems=() validator line
  render >"$work/manifests" 2>"$work/error" || stop "${overlay#"$root"/}/$type can't be rendered: $(error)"
  python facts "${overlay#"$root"/}" "$type" <"$work/manifests" >"$work/facts" || stop "the manifests can't be read (see above)"
  mapfile -t problems < <(facts problem)
  for validator in .feedmill/venv/bin/kubernetes-validate kubernetes-validate; do
    command -v "$validator" >/dev/null || continue
    judged=1
    "$validator" --strict --quiet --no-warn "$work/manifests" >"$work/error" 2>&1 || problems+=("$(cat "$work/error")")
    break
  done
  ((${#problems[@]} == 0)) || stop "the manifests are wrong:$(printf '\n  %s' "${problems[@]}")"
  mapfile -t images < <(facts ours)
  image=${images[0]}
  ((!judged)) || say "The manifests fit Kubernetes' schemas. (Fields of custom resources are checked by the cluster only.)"
  line=$(facts tagged | paste -s -d ' ' -)
  [[ $RULES != prod || -z $line ]] || complain "not pinned by a digest, so a node may pull another image tomorrow (make pin-images): $line"
}

# The clone, and the repository of an overlay that lies elsewhere.
check_tree() {
  local changes
  commit=$(git rev-parse --verify HEAD 2>"$work/error") || { commit=unknown; refuse "git knows no commit here: $(error)"; }
  changes=$(git status --porcelain 2>/dev/null) || true
  choose_tag "$changes"
  check_commit "$root" "$commit" "$changes"
  manifests_commit=$commit
  [[ $overlay != "$root"/* ]] || return 0
  manifests_commit=$(git -C "$overlay" rev-parse --verify HEAD 2>"$work/error") ||
    { manifests_commit=unknown; ((allow_dirty)) || refuse "$overlay is in no git repository: nobody could say later what was deployed"; }
  check_commit "$overlay" "$manifests_commit" "$(git -C "$overlay" status --porcelain . 2>/dev/null || true)"
}

# By what a clone knows of its remotes. Nothing is fetched: a deploy must not need the git server, and a clone that has
# pushed, like a CI job that has cloned, knows enough. A shallow clone of a release's tag knows no branches: there the tag
# stands for them (and the image of a release is never built here).
check_commit() { # DIRECTORY COMMIT CHANGES
  local branches at="${1#"$root"}"
  at=${at:+ in $1}
  [[ $2 != unknown ]] && ((!allow_dirty)) || return 0
  [[ -z $3 ]] || refuse "there are changes that are not committed$at (commit them; -a allows them, except by prod's rules):"$'\n'"$(head -n 5 <<<"$3")"
  ((!build)) || return 0
  [[ $(git -C "$1" rev-parse --is-shallow-repository) != true || -z $(git -C "$1" tag --points-at HEAD --list 'v[0-9]*') ]] || return 0
  branches=$(git -C "$1" for-each-ref --contains "$2" --format='%(refname:lstrip=3)' refs/remotes)
  if [[ -z $branches ]]; then
    refuse "commit ${2::12}$at is not pushed (git push; if somebody else pushed it: git fetch)"
  elif [[ $BRANCH != any ]] && ! grep -qxF "$BRANCH" <<<"$branches"; then
    refuse "commit ${2::12}$at is pushed, but not to the branch $BRANCH, from which alone $environment is deployed"
  fi
}

check_context() {
  context=$(kubectl config current-context 2>/dev/null) || context=
  if [[ -z $context ]]; then
    refuse "kubectl has no current context (kubectl config use-context NAME)"
  elif [[ ! $context =~ ^($CONTEXT)$ ]]; then
    refuse "kubectl's context is $context, but $environment is where the context is called $CONTEXT ($values)"
    context=   # and a dry run does not even look there
  elif ! k get namespace "$NAMESPACE" -o name --request-timeout=10s >/dev/null 2>"$work/error"; then
    not_found && first=1 && return
    refuse "the cluster of context $context does not answer: $(error)"
    context=
  fi
}

# Secrets are made by people or by operators; only those of the broker's users by a deploy (make_broker_users). What an
# operator makes of an object of ours is there only once that object is ready. Neither does the server look for the
# catalogue: without it the database waits, and says so nowhere but in its status.
check_secrets() { # now | ready
  local name when missing=()
  [[ $context ]] || return 0
  while IFS=$'\t' read -r name when; do
    [[ $when == now || $1 == ready ]] || continue
    k get secret "$name" -o name >/dev/null 2>"$work/error" || ! not_found || missing+=("$name")
  done < <(facts secret)
  ((${#missing[@]} == 0)) || refuse "secrets are missing in the namespace $NAMESPACE: ${missing[*]} (docs/how-to/kubernetes.md)"
  for name in $(facts catalog); do
    k get clusterimagecatalogs.postgresql.cnpg.io "$name" -o name >/dev/null 2>"$work/error" || ! not_found ||
      refuse "the cluster has no ClusterImageCatalog $name (docs/how-to/kubernetes.md)"
  done
}

# Before there is a namespace, the server can't judge what is in it, but knows the kinds. A Job can't be changed, so it is
# tried as a new one: that there is one of its name is said last.
check_server() {
  local where=server
  [[ $context ]] || { ((judged)) || refuse "nobody looked at the fields of the manifests: install kubernetes-validate (make setup), or use a context whose cluster answers"; return; }
  ((!first)) || where=client
  if ! k apply --dry-run=$where -f "$work/manifests" -l "$NO_JOB" >/dev/null 2>"$work/error"; then
    reject "the cluster would not take the manifests:"$'\n'"$(cat "$work/error")"
  elif ((first)); then
    ((judged)) || say "Nobody looks at the fields of the manifests before there is a namespace: kubernetes-validate would (make setup)."
  else
    judged=1
    k create --dry-run=server -f "$work/manifests" -l "$JOB" >/dev/null 2>"$work/error" || exists ||
      reject "the cluster would not take the migration:"$'\n'"$(cat "$work/error")"
  fi
}
reject() { rejected=1; refuse "$1"; }
