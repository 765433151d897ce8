#!/usr/bin/env bash
# Writes beside each image of others its digest, as its registry has it now: NAME:TAG becomes NAME:TAG@sha256:….
#   scripts/pin_images.sh           looks every tag up, and writes (a digest that is there is renewed)
#   scripts/pin_images.sh --check   asks nobody; lists what has no digest, and then ends with 1
# Our own image is not among them: deploy.sh finds out its digest when it is pushed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly FILES=(Dockerfile docker-compose.yml k8s/base/broker.yaml)
readonly REFERENCE='[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*'
readonly BEFORE='^ *image: |^ARG PYTHON_IMAGE=|^.*PYTHON_IMAGE:-'
readonly DIGEST='@sha256:[0-9a-f]{64}'

# The references in all files, one a line, with their digest if they have one.
references() {
  sed -nE "s#($BEFORE)($REFERENCE($DIGEST)?)([ }].*)?\$#\2#p" "${FILES[@]}" | sort -u
}

digest_of() { # NAME:TAG
  local digest
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1") &&
    [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] && printf '%s' "$digest"
}

if [[ ${1:-} == --check ]]; then
  if references | grep -vE "$DIGEST$"; then exit 1; fi
  exit
fi
(($# == 0)) || { echo "usage: scripts/pin_images.sh [--check]" >&2; exit 2; }
command -v docker >/dev/null || { echo 'pin_images.sh: docker (with buildx) asks the registries, and is not installed' >&2; exit 1; }

declare -A digests=()
for name in $(references | sed -E "s/$DIGEST$//" | sort -u); do   # all are known before one is written
  digests[$name]=$(digest_of "$name") || { echo "pin_images.sh: the registry gives no digest of $name" >&2; exit 1; }
done
for name in "${!digests[@]}"; do
  pattern=${name//./\\.}
  for file in "${FILES[@]}"; do   # into the file as it is: its mode stays
    text=$(sed -E "s#($BEFORE)$pattern($DIGEST)?(\$|[ }])#\1$name@${digests[$name]}\3#" "$file")
    printf '%s\n' "$text" >"$file"
  done
  printf '%s@%s\n' "$name" "${digests[$name]}"
done
