# shellcheck shell=bash disable=SC2154,SC2034
# The tag and the image. An image with a registry in its name is looked for there, and built and pushed if it is
# missing; one without (dev) is built here and loaded into the cluster on this machine.

# Uncommitted changes go into the tag: with one tag for two images, nodes would keep the one that they have.
choose_tag() { # UNCOMMITTED-CHANGES
  tag=$given_tag
  [[ -z $tag ]] || return 0
  tag=$(git describe --tags --always --abbrev=12 --match 'v[0-9]*' 2>/dev/null) || tag=unversioned
  [[ -z $1 ]] || tag+=-dirty-$({ git diff HEAD; git ls-files --others --exclude-standard -z | xargs -0 cat; } | git hash-object --stdin | cut -c 1-8)
}

check_image() {
  local full="$image:$tag" code=0
  if [[ $image != */* && $environment != dev ]]; then
    refuse "the image $image has no registry in its name, where $environment could pull it from (newName in k8s/overlays/$environment)"
  fi
  if [[ $image == */* ]]; then
    in_registry "$full" || code=$?
    ((code)) || { pin_image; return 0; }
    # Missing is only what the registry says is missing: silence isn't, nor is a credential helper that is "not found".
    if ((code == 124)) || ! grep -qiE "no such manifest|manifest .*(unknown|not found)|name.unknown|$full: not found\$" "$work/error"; then
      refuse "the registry can't be asked for $full: $([[ -s $work/error ]] && error || echo "it gives no answer")"
      return   # a dry run goes on
    fi
    push=1
  elif docker image inspect "$full" >/dev/null 2>&1 && [[ $given_tag ]]; then return; fi

  if [[ $given_tag ]]; then refuse "there is no image $full, and one that is named by -t is not built by a deploy (-b builds it)"
  elif ((dry)); then say "$full would be built$( ((!push)) || printf ' and pushed')."
  else build_image; fi
}

# A tag may mean another image tomorrow, and what nodes have pulled by then nobody knows: prod names the image by the
# digest that the registry has for it, once it is there.
pin_image() {
  [[ $environment == prod && $image == */* ]] || return 0
  digest=$(digest_in_registry "$image:$tag" 2>"$work/error") || digest=
  if [[ ! $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
    digest=
    complain "the registry does not say the digest of $image:$tag ($(error)): it is deployed by its tag"
    return
  fi
  say "$image:$tag is $digest."
  render "$type" "$image" "$tag" >"$work/manifests" || stop "the manifests can't be rendered with the digest (see above)"
}

digest_in_registry() {
  local limit=()
  ! command -v timeout >/dev/null || limit=(timeout 30)
  if command -v docker >/dev/null; then "${limit[@]}" docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1"
  elif command -v crane >/dev/null; then "${limit[@]}" crane digest "$1"
  else "${limit[@]}" skopeo inspect --format '{{.Digest}}' "docker://$1"; fi
}

in_registry() {
  local limit=()
  ! command -v timeout >/dev/null || limit=(timeout 30)
  if command -v docker >/dev/null; then "${limit[@]}" docker manifest inspect "$1"
  elif command -v crane >/dev/null; then "${limit[@]}" crane manifest "$1"
  elif command -v skopeo >/dev/null; then "${limit[@]}" skopeo inspect --raw "docker://$1"
  else echo "there is no docker, crane or skopeo" >&2; false; fi >/dev/null 2>"$work/error"
}

build_image() {
  step "Building $image:$tag"
  command -v docker >/dev/null || stop "docker is not installed, and $image:$tag would have to be built"
  docker build --tag "$image:$tag" --label "org.opencontainers.image.revision=$commit" --label "org.opencontainers.image.version=$tag" \
    --build-arg "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)" . || stop "the image could not be built (see above)"
}

publish_image() {
  local full="$image:$tag"
  if [[ $image == */* ]]; then
    ((push)) || return 0
    in_child docker push "$full" || stop "the image could not be pushed (see above)"
    pin_image
    return
  fi
  case $context in
    kind-*) in_child kind load docker-image "$full" --name "${context#kind-}" ;;
    k3d-*) in_child k3d image import "$full" --cluster "${context#k3d-}" ;;
    minikube) in_child minikube image load "$full" ;;
    *) say "$full has no registry in its name: the nodes of $context must use the docker engine of this machine." ;;
  esac || stop "the image could not be loaded into the cluster (see above)"
}
