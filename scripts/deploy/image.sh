# shellcheck shell=bash disable=SC2154,SC2034
# The tag and the images: Feedmill's, and the enricher's. One without a registry (dev) is loaded into the cluster.

# A release is v0.2.0 in git and 0.2.0 as an image. Uncommitted changes change the tag: nodes keep the image that they have.
choose_tag() {
  tag=${given_tag:-$(git describe --tags --always --abbrev=12 --match 'v[0-9]*' 2>/dev/null || echo unversioned)}
  [[ ! $tag =~ ^v[0-9]+\.[0-9]+\.[0-9] ]] || tag=${tag#v}
  [[ $given_tag || -z $(git status --porcelain 2>/dev/null) ]] ||
    tag+=-dirty-$({ git diff HEAD; git ls-files --others --exclude-standard -z | xargs -0 cat; } | git hash-object --stdin | cut -c 1-8)
}

check_image() {
  local one
  [[ $image == */* || $RULES == dev ]] ||
    refuse "the image $image has no registry in its name, where $environment could pull it from (newName in $overlay)"
  for one in "${images[@]}"; do is_there "$one" || missing+=("$one"); done
  if ((${#missing[@]} == 0)); then return; fi
  if [[ $given_tag ]]; then refuse "there is no image ${missing[0]}:$tag, and one that is named by -t is not built by a deploy (-b builds it)"
  elif [[ $image == */* && $tag =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
    refuse "there is no image ${missing[0]}:$tag, and that of a release is not built by a deploy: its CI job pushes it (by hand: -b, docker push)"
  elif ((dry)); then say "${missing[*]/%/:$tag} would be built$([[ $image != */* ]] || printf ' and pushed')."
  else build_images "${missing[@]}"; fi
}

# A tag may mean another image tomorrow, and what nodes have pulled by then nobody knows: prod names its images by the
# digests that the registry has for them. Missing is only what the registry says is missing: silence isn't.
is_there() { # IMAGE
  local digest
  if [[ $1 != */* ]]; then docker image inspect "$1:$tag" >/dev/null 2>&1 && [[ $given_tag ]]; return; fi
  if digest=$(timeout 30 docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1:$tag" 2>"$work/error") &&
    [[ $RULES != prod || $digest == sha256:* ]]; then
    [[ $RULES != prod ]] || digests[$1]=$digest
  elif (($? != 124)) && grep -qiE "no such manifest|manifest .*(unknown|not found)|name.unknown|$1:$tag: not found\$" "$work/error"; then
    return 1
  else
    refuse "the registry can't be asked for $1:$tag: $([[ -s $work/error ]] && error || echo "it gives no answer")"
  fi
}

build_images() { # IMAGE…
  local one target
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
    for one in "${missing[@]}"; do
      in_child docker push "$one:$tag" || stop "the image could not be pushed (see above)"
      is_there "$one" || stop "the registry does not have $one:$tag, which was pushed: $(error)"
    done
    render
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
