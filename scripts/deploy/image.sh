# shellcheck shell=bash disable=SC2154,SC2034
# The tag and the images: Feedmill's, and the enricher's if the manifests name it. An image with a registry in its name is
# looked for there, and built and pushed if it is missing; one without (dev) is built here and loaded into the cluster.

# A release is v0.2.0 in git, and 0.2.0 as a version and as an image's tag (.github/workflows/release.yml pushes it).
# Uncommitted changes go into the tag: with one tag for two images, nodes would keep the one that they have.
choose_tag() { # UNCOMMITTED-CHANGES
  tag=${given_tag:-$(git describe --tags --always --abbrev=12 --match 'v[0-9]*' 2>/dev/null || echo unversioned)}
  [[ ! $tag =~ ^v[0-9]+\.[0-9]+\.[0-9] ]] || tag=${tag#v}
  [[ -z $1 || $given_tag ]] || tag+=-dirty-$({ git diff HEAD; git ls-files --others --exclude-standard -z | xargs -0 cat; } | git hash-object --stdin | cut -c 1-8)
  render "$tag" >"$work/manifests" || stop "the manifests can't be rendered with the tag $tag (see above)"
}

check_image() {
  local one missing=()
  if [[ $image != */* && $RULES != dev ]]; then
    refuse "the image $image has no registry in its name, where $environment could pull it from (newName in $overlay)"
  fi
  for one in "${images[@]}"; do is_there "$one:$tag" || missing+=("$one"); done
  if ((${#missing[@]} == 0)); then pin_images; return 0; fi
  [[ $image != */* ]] || to_push=("${missing[@]}")
  if [[ $given_tag ]]; then refuse "there is no image ${missing[0]}:$tag, and one that is named by -t is not built by a deploy (-b builds it)"
  elif [[ $image == */* && $tag =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
    refuse "there is no image ${missing[0]}:$tag, and that of a release is not built by a deploy: its CI job pushes it (by hand: -b, docker push)"
  elif ((dry)); then say "${missing[*]/%/:$tag} would be built$( ((${#to_push[@]} == 0)) || printf ' and pushed')."
  else build_images "${missing[@]}"; fi
}

is_there() { # IMAGE:TAG
  local code=0
  if [[ $1 != */* ]]; then docker image inspect "$1" >/dev/null 2>&1 && [[ $given_tag ]]; return; fi
  in_registry "$1" || code=$?
  ((code)) || return 0
  # Missing is only what the registry says is missing: silence isn't, nor is a credential helper that is "not found".
  if ((code == 124)) || ! grep -qiE "no such manifest|manifest .*(unknown|not found)|name.unknown|$1: not found\$" "$work/error"; then
    refuse "the registry can't be asked for $1: $([[ -s $work/error ]] && error || echo "it gives no answer")"
    return 0   # a dry run goes on
  fi
  return 1
}

# A tag may mean another image tomorrow, and what nodes have pulled by then nobody knows: prod names its images by the
# digests that the registry has for them, once they are there.
pin_images() {
  local one said
  [[ $RULES == prod && $image == */* ]] || return 0
  for one in "${images[@]}"; do
    said=$(digest_in_registry "$one:$tag" 2>"$work/error") || said=
    if [[ ! $said =~ ^sha256:[0-9a-f]{64}$ ]]; then
      complain "the registry does not say the digest of $one:$tag ($(error)): it is deployed by its tag"
      continue
    fi
    digests[$one]=$said
    say "$one:$tag is $said."
  done
  digest=${digests[$image]:+@${digests[$image]}}
  render "$tag" >"$work/manifests" || stop "the manifests can't be rendered with the digest (see above)"
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

build_images() { # IMAGE…
  local one target
  command -v docker >/dev/null || stop "docker is not installed, and $1:$tag would have to be built"
  for one in "$@"; do
    step "Building $one:$tag"
    target=()
    [[ $one == "$image" ]] || target=(--target "${one#"$image-"}")
    docker build --tag "$one:$tag" --label "org.opencontainers.image.revision=$commit" --label "org.opencontainers.image.version=$tag" \
      --build-arg "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)" "${target[@]}" . || stop "the image could not be built (see above)"
  done
}

publish_images() {
  local one
  if [[ $image == */* ]]; then
    ((${#to_push[@]})) || return 0
    for one in "${to_push[@]}"; do in_child docker push "$one:$tag" || stop "the image could not be pushed (see above)"; done
    pin_images
    return
  fi
  for one in "${images[@]/%/:$tag}"; do
    case $context in
      kind-*) in_child kind load docker-image "$one" --name "${context#kind-}" ;;
      k3d-*) in_child k3d image import "$one" --cluster "${context#k3d-}" ;;
      minikube) in_child minikube image load "$one" ;;
      *) say "$one has no registry in its name: the nodes of $context must use the docker engine of this machine." ;;
    esac || stop "the image could not be loaded into the cluster (see above)"
  done
}
