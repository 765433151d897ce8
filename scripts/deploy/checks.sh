# shellcheck shell=bash disable=SC2154,SC2034
# What must be true before a deploy. deploy.sh calls these in the order in which they stand here.

problems=()
stop_for_problems() { ((${#problems[@]} == 0)) || stop "$1:$(printf '\n  %s' "${problems[@]}")"; }
matches() { [[ $1 =~ ^($2)$ ]]; }   # 2 if the pattern is no regular expression

check_tools() {
  local tool
  for tool in kubectl git awk diff; do
    command -v "$tool" >/dev/null || stop "$tool is not installed, or not on the PATH"
  done
  if ((build)); then
    command -v docker >/dev/null || stop "docker is not installed, and -b builds with it"
  elif ! command -v docker >/dev/null && ! command -v crane >/dev/null && ! command -v skopeo >/dev/null; then
    refuse "docker is not installed: without it (or crane, or skopeo) nobody can look whether the image is there"
  fi
}

check_tree() {
  local changes
  if ! commit=$(git rev-parse --verify HEAD 2>"$work/error"); then
    commit=unknown
    refuse "git knows no commit here: $(error)"
    changes=
  else
    changes=$(git status --porcelain)
    [[ -z $changes ]] || ((allow_dirty)) ||
      refuse "there are changes that are not committed (commit them; -a allows them, except in prod):"$'\n'"$(head -n 5 <<<"$changes")"
  fi
  choose_tag "$changes"
}

# By what this clone knows of its remotes. Nothing is fetched: a deploy must not need the git server, and a clone that
# has pushed, like a CI job that has cloned, knows enough.
check_pushed() {
  local branches
  [[ $commit != unknown ]] && ((!allow_dirty)) || return 0
  branches=$(git for-each-ref --contains "$commit" --format='%(refname:lstrip=3)' refs/remotes)
  if [[ -z $branches ]]; then
    refuse "commit ${commit::12} is not pushed (git push; if somebody else pushed it: git fetch)"
  elif [[ ${BRANCH:-any} != any ]] && ! grep -qxF "$BRANCH" <<<"$branches"; then
    refuse "commit ${commit::12} is pushed, but not to the branch $BRANCH, from which alone $environment is deployed"
  fi
}

check_context() {
  local code=0
  context=$(kubectl config current-context 2>/dev/null) || context=
  matches "$context" "${CONTEXT:-.*}" || code=$?   # of a pattern that is none, the next check speaks
  if [[ -z $context ]]; then
    refuse "kubectl has no current context (kubectl config use-context NAME)"
  elif ((code == 1)); then
    refuse "kubectl's context is $context, but $environment is where the context is called $CONTEXT ($values)"
    context=   # and a dry run does not even look there
  elif ! kubectl get --raw=/version --context="$context" --request-timeout=10s >/dev/null 2>"$work/error"; then
    refuse "the cluster of context $context does not answer: $(error)"
    context=
  fi
}

# Lines NAME=value and comments, read and never executed.
read_values() {
  local line number=0
  [[ -f $values ]] || { problems+=("$values: there is no such file"); return 0; }
  while IFS= read -r line || [[ $line ]]; do
    number=$((number + 1))
    if [[ $line =~ ^(CONTEXT|NAMESPACE|BRANCH|FOUNDATION_SECONDS|MIGRATE_SECONDS|ROLLOUT_SECONDS)=(.*)$ ]]; then
      printf -v "${BASH_REMATCH[1]}" %s "${BASH_REMATCH[2]}"
    elif [[ $line && $line != \#* ]]; then
      problems+=("$values, line $number: neither a comment nor NAME=value with a name that is known")
    fi
  done <"$values"
}

expect() { # NAME PATTERN WHAT-IT-IS
  if [[ -z ${!1:-} ]]; then problems+=("$values: $1 is not set")
  elif ! matches "${!1}" "$2"; then problems+=("$values: $1 is not $3"); fi
}

# All that is wrong with the values, at once: of deploy.env, and of the settings in the manifests.
check_variables() {
  local name code=0 line
  matches x "${CONTEXT:-}" || code=$?
  ((code < 2)) || problems+=("$values: CONTEXT is not a regular expression")
  expect CONTEXT '.+' "a pattern"
  expect NAMESPACE '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?' "a name of a-z, 0-9 and -"
  expect BRANCH '[A-Za-z0-9][A-Za-z0-9._/-]*' "a branch, or the word any"
  for name in FOUNDATION_SECONDS MIGRATE_SECONDS ROLLOUT_SECONDS; do
    expect "$name" '[1-9][0-9]{0,4}' "a whole number of seconds, 1 to 99999"
  done
  if render "$type" >"$work/manifests" 2>"$work/error"; then
    awk -f scripts/deploy/facts.awk "$work/manifests" >"$work/facts"
    while IFS= read -r line; do problems+=("$line"); done \
      < <(awk -f scripts/deploy/settings.awk docs/reference/configuration.md "$work/facts")
  else
    problems+=("k8s/overlays/$environment/$type can't be rendered: $(error)")
  fi
  stop_for_problems "values are wrong"
}

# Secrets are made by people or by operators; only those of the broker's users by a deploy (make_broker_users). What an
# operator makes of an object of ours is named for it (broker-default-user, database-app) and is there only once that
# object is ready.
check_secrets() { # now | ready
  local name owner missing=()
  [[ $context ]] || return 0
  while read -r _ name; do
    while [[ $1 == now ]] && read -r owner; do
      [[ $name != "$owner" && $name != "$owner"-* ]] || continue 2
    done < <(objects 1-foundation | sed -n -E 's:^(secret|.+\..+)/::p')
    k get secret "$name" -o name >/dev/null 2>"$work/error" || ! not_found || missing+=("$name")
  done < <(facts secret | sort -u)
  ((${#missing[@]} == 0)) || refuse "secrets are missing in the namespace $NAMESPACE: ${missing[*]} (docs/how-to/kubernetes.md)"
}

# render TYPE [IMAGE TAG]: the overlay; with a tag (and the digest, if it is known), by a kustomization of our own around it, outside of the tree. It can
# name the overlay by a relative path only.
render() {
  local overlay="k8s/overlays/$environment/$1"
  if (($# == 1)); then kubectl kustomize "$overlay"; return; fi
  cat >"$work/kustomization.yaml" <<YAML
resources: ["$(tr -dc / <<<"$work" | sed 's:/:../:g')${root#/}/$overlay"]
images:
$(for one in "${images[@]}"; do echo "- {name: \"$one\", newTag: \"$3\"${digests[$one]:+, digest: \"${digests[$one]}\"}}"; done)
transformers:
- |-
  {apiVersion: builtin, kind: AnnotationsTransformer, metadata: {name: change-cause},
   annotations: {kubernetes.io/change-cause: "$type, image $3, manifests of ${commit::12}"},
   fieldSpecs: [{path: metadata/annotations, create: true, kind: Deployment}]}
YAML
  kubectl kustomize "$work"
}

check_manifests() {
  local line validator found=0
  image=$(facts image | cut -f 2 | sed -E 's/@.*//; s|:[^/:]*$||' | grep -E '(^|/)feedmill$' | sort -u) || true
  [[ $image && $image != *$'\n'* ]] || stop "the manifests are wrong: feedmill's image must be in them, from one registry${image:+ (not: ${image//$'\n'/, })}"
  images=("$image")
  ! facts image | cut -f 2 | grep -qF "$image-enricher:" || images+=("$image-enricher")
  render "$type" "$image" "$tag" >"$work/manifests" || stop "the manifests can't be rendered with the tag $tag (see above)"
  render "$other" | awk -f scripts/deploy/facts.awk >"$work/facts.other" ||
    stop "k8s/overlays/$environment/$other can't be rendered, and what of it must go is read from there (see above)"
  awk -f scripts/deploy/facts.awk "$work/manifests" >"$work/facts"
  while IFS= read -r line; do problems+=("$line"); done \
    < <(awk -v namespace="$NAMESPACE" -v type="$type" -f scripts/deploy/contract.awk "$work/facts")
  for validator in .feedmill/venv/bin/kubernetes-validate kubernetes-validate; do
    command -v "$validator" >/dev/null || continue
    found=1
    "$validator" --strict --quiet --no-warn "$work/manifests" >"$work/error" 2>&1 || problems+=("$(cat "$work/error")")
    break
  done
  stop_for_problems "the manifests are wrong"
  warn_of_tags
  ((!found)) || say "The manifests fit Kubernetes' schemas. (Fields of custom resources are checked by the cluster only.)"
  ((found || build)) || [[ $context ]] ||
    refuse "nobody looked at the fields of the manifests: install kubernetes-validate (make setup), or use a context whose cluster answers"

  [[ $context ]] || return 0
  while read -r _ line; do   # without it the database waits, and says so nowhere but in its status
    k get clusterimagecatalogs.postgresql.cnpg.io "$line" -o name >/dev/null 2>"$work/error" || ! not_found ||
      refuse "the cluster has no ClusterImageCatalog $line (docs/how-to/kubernetes.md)"
  done < <(facts catalog | sort -u)
  if ! k get namespace "$NAMESPACE" -o name >/dev/null 2>"$work/error" && not_found; then
    first=1   # the server can't judge objects whose namespace doesn't exist, but it knows which kinds there are
    check_kinds
    ((found)) || say "Nobody looks at the fields of the manifests before there is a namespace: kubernetes-validate would (make setup)."
  elif ! k apply --dry-run=server -f "$work/manifests" -l "$NO_JOB" >/dev/null 2>"$work/error"; then
    refuse "the cluster would not take the manifests:"$'\n'"$(cat "$work/error")"
  fi
}

# Images of others, whose tags others may move.
warn_of_tags() {
  local tagged
  [[ $environment == prod ]] || return 0
  tagged=$(facts image | cut -f 2 | grep -vE '(@sha256:|(^|/)feedmill(-enricher)?:)' | sort -u | paste -s -d ' ' -) || true
  [[ -z $tagged ]] || complain "not pinned by a digest, so a node may pull another image tomorrow (make pin-images): $tagged"
}

# By kind and group, not by version: only the preferred one is listed. An API of somebody else that is down makes this
# fail and still list the others.
check_kinds() {
  local missing
  kubectl api-resources --no-headers --context="$context" >"$work/kinds" 2>"$work/error" || true
  missing=$({
    awk '{ kind = tolower($NF); group = $(NF - 2); sub("/.*", "", group); print kind; print kind "." group }' "$work/kinds"
    echo '='
    facts object | cut -f 3 | sed -E 's/\.[^.]+//' | sort -u
  } | awk '$0 == "=" { ours = 1; next } ours && !($0 in known) { printf " %s", $0 } { known[$0] }')
  [[ -z $missing ]] || refuse "the cluster does not know these kinds (an operator is not installed):$missing$(sed 's/^/\n  /' "$work/error")"
}
