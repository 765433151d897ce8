#!/usr/bin/env bash
# Install what `make run` and `make test` need, on Debian or Ubuntu, as root or as a user with sudo:
#   - missing system packages: RabbitMQ and PostgreSQL servers, Python with venv, CA certificates. Their services
#     are neither started nor enabled: Feedmill runs servers of its own (local/servers).
#   - the virtual environment .feedmill/venv with the locked packages.
# Does nothing, at once and silently, when all of it is there.
#
# usage: scripts/setup.sh [--dev] [--no-servers]
#   --dev: what checks, tests and benchmarks need (requirements-dev.lock; Chromium, where Debian's is offered), else what
#       running needs (requirements-local.lock)
#   --no-servers: the broker and the database are given by their URLs
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
self=$root/scripts/setup.sh
state=$root/.feedmill
venv=$state/venv
stamp=$state/setup.stamp
log=$state/setup.log
minimum='3.11'
policy=/usr/sbin/policy-rc.d
cluster_conf=/etc/postgresql-common/createcluster.d/feedmill-setup.conf
mark='written by feedmill/scripts/setup.sh for the length of one installation; safe to delete'
unset PYTHONHOME PYTHONPATH # another Python's: they would lead ours astray

fail() { # fail WHAT WHY WHAT-TO-DO
  printf 'setup failed: %s\n  why: %s\n  what to do: %s\n' "$1" "$2" "$3" >&2
  exit 1
}

step() { # step WHAT WHAT-TO-DO-IF-IT-FAILS COMMAND…: one line, the rest goes to the log
  local what=$1 advice=$2
  shift 2
  printf 'setup: %s\n' "$what"
  printf '\n--- %s\n' "$what" >>"$log"
  if ! "$@" >>"$log" 2>&1; then
    printf 'The last lines of %s:\n' "$log" >&2
    tail -n 15 "$log" | sed 's/^/    /' >&2
    fail "$what" "the command ended with an error, see above" "$advice"
  fi
}

# ---- system packages -------------------------------------------------------------------------------------------

has_rabbitmq() { [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]; }

has_postgresql() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

has_browser() { command -v chromium >/dev/null || command -v google-chrome >/dev/null; }

is_good_python() { # has the version, and can make virtual environments
  [ -n "$1" ] && "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (${minimum/./, }))" 2>/dev/null
}

find_python() { # prints the first good one
  local candidate
  for candidate in "$(command -v python3 || true)" /usr/bin/python3 /usr/bin/python3.{14,13,12,11}; do
    if is_good_python "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

install_packages() { # as root; PACKAGE…, where "python" stands for the first Python that will do, and "browser" for Chromium
  local packages=() package had_erlang=no had_postgresql=no
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
  command -v erl >/dev/null && had_erlang=yes
  [ -d /usr/share/postgresql-common ] && had_postgresql=yes
  trap 'restore_policy' EXIT
  # No package may start a service, and no default cluster is made. A file of the machine's owner is left alone.
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\n# %s\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
  fi
  mkdir -p "$(dirname "$cluster_conf")"
  printf '# %s\ncreate_main_cluster = false\n' "$mark" >"$cluster_conf"

  # A broken third-party source must not stop us; if it matters, the installation fails and says so.
  apt-get -o DPkg::Lock::Timeout=300 update || echo 'apt-get update failed; going on with the lists that are there'
  for package in "$@"; do
    if [ "$package" = python ]; then
      mapfile -t -O "${#packages[@]}" packages < <(python_packages)
    elif [ "$package" = browser ]; then
      mapfile -t -O "${#packages[@]}" packages < <(browser_packages)
    else
      packages+=("$package")
    fi
  done
  [ "${#packages[@]}" -gt 0 ] || return 0
  apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${packages[@]}" || return
  if command -v systemctl >/dev/null; then
    [ "$had_erlang" = yes ] || disable_services rabbitmq-server.service epmd.socket epmd.service
    [ "$had_postgresql" = yes ] || disable_services postgresql.service
  fi
}

disable_services() { # only those of packages that we installed
  local service
  for service in "$@"; do
    systemctl disable "$service" || true # not every version of the packages has each of them
  done
}

restore_policy() {
  grep -qsF "$mark" "$policy" && rm -f "$policy"
  rm -f "$cluster_conf"
  rmdir --ignore-fail-on-non-empty "$(dirname "$cluster_conf")" 2>/dev/null || true
}

python_packages() { # the system's python3 if it is new enough, else a newer one beside it
  local version
  version=$(apt-cache show --no-all-versions python3 2>/dev/null | sed -n 's/^Version: \([0-9]*\.[0-9]*\).*/\1/p')
  if [ -n "$version" ] && dpkg --compare-versions "$version" ge "$minimum"; then
    printf '%s\n' python3 python3-venv
    return
  fi
  for version in 3.13 3.12 3.11; do
    if [ -n "$(apt-cache show "python$version-venv" 2>/dev/null)" ]; then
      printf '%s\n' "python$version" "python$version-venv"
      return
    fi
  done
  echo 'python3-newer-than-3.10-is-not-offered-here' # apt's own message then says that it has no such package
}

browser_packages() { # Ubuntu has Chromium only as a snap: the tests of the dashboard are skipped there
  [ -z "$(apt-cache show chromium 2>/dev/null)" ] || printf '%s\n' chromium fonts-dejavu-core
}

ensure_packages() {
  local missing=() package
  [ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
  if [ "$servers" = yes ]; then
    has_rabbitmq || missing+=(rabbitmq-server)
    has_postgresql || missing+=(postgresql)
  fi
  [ -n "$python" ] || missing+=(python)
  if [ "$kind" = dev ] && ! has_browser && { [ "${#missing[@]}" -gt 0 ] || [ "$(id -u)" = 0 ]; }; then
    missing+=(browser) # nobody is asked for a password for it alone
  fi
  [ "${#missing[@]}" -gt 0 ] || return 0

  local become=() list=${missing[*]}
  list=${list/python/Python $minimum or newer}
  list=${list/browser/Chromium}
  command -v apt-get >/dev/null ||
    fail "installing $list" "this is not Debian or Ubuntu: there is no apt-get" "install them yourself, then run make again"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      fail "installing $list" "you are not root and there is no sudo" "as root: $self"
    become=(sudo)
    sudo -n true 2>/dev/null || [ -t 0 ] ||
      fail "installing $list" "sudo asks for a password and there is no terminal" "run \`make setup\` in a terminal, or as root: $self"
    for package in http_proxy https_proxy no_proxy; do
      [ -z "${!package:-}" ] || become+=("$package=${!package}")
    done
  fi
  step "installing $list" "see what apt-get says; \`apt-get install\` them yourself, then run make again" \
    ${become[@]+"${become[@]}"} bash "$self" --install-packages "${missing[@]}"
}

# ---- the virtual environment -----------------------------------------------------------------------------------

fingerprint() { # KIND: changes with all that the environment was made from and for: also when the clone is moved
  {
    printf '%s\n' "$root" "$(readlink -f "$venv/bin/python" || true)"
    cat "$root/requirements-$1.lock" "$root/pyproject.toml" "$self"
  } | sha256sum
}

is_current() { # an environment for development has all that running needs
  [ -x "$venv/bin/python" ] && [ -f "$stamp" ] || return
  local made
  made=$(<"$stamp")
  [ "$made" = "$(fingerprint dev)" ] || { [ "$kind" = local ] && [ "$made" = "$(fingerprint local)" ]; }
}

is_usable() { # a moved or copied environment, or one whose Python was upgraded, is not
  [ -x "$venv/bin/python" ] && grep -qsF "$venv" "$venv/bin/pip" && "$venv/bin/python" -m pip --version >/dev/null 2>&1
}

pip_install() {
  # Older versions of pip don't know SSL_CERT_FILE, as most programs do; a setting of pip's own goes before it.
  if [ -n "${SSL_CERT_FILE:-}" ] && [ -z "${PIP_CERT:-}${REQUESTS_CA_BUNDLE:-}${CURL_CA_BUNDLE:-}" ] &&
    ! "$venv/bin/python" -m pip config get global.cert; then
    export PIP_CERT=$SSL_CERT_FILE
  fi
  # PIP_USER: a user's own setting of it would contradict the environment. All else of pip's configuration holds.
  PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install --no-input --quiet "$@"
}

ensure_environment() {
  local advice="see what pip says; is the network (or pip's configured index) reachable? Then run make again"
  rm -f "$stamp"
  if ! is_usable; then
    rm -rf "$venv"
    step "making the virtual environment .feedmill/venv with $python" \
      "install python3-venv, or delete $venv" "$python" -m venv "$venv"
  fi
  step "installing the locked Python packages" "$advice" \
    pip_install --require-hashes -r "$root/requirements-$kind.lock"
  step "installing feedmill itself" "$advice" pip_install --no-deps --no-build-isolation --editable "$root"
  fingerprint "$kind" >"$stamp"
}

# ---- checks ----------------------------------------------------------------------------------------------------

check_owner() {
  local owner
  if [ ! -e "$state" ]; then
    [ -w "$root" ] ||
      fail "making $state" "$root belongs to $(stat -c %U "$root") and you ($(id -un)) may not write there" \
        "work in a clone of your own, or run as $(stat -c %U "$root")"
    return
  fi
  owner=$(stat -c %u "$state")
  [ "$owner" != "$(id -u)" ] || return 0
  if [ "$(id -u)" != 0 ] || [ "${SUDO_UID:-}" = "$owner" ]; then
    fail "using $state" "it belongs to $(stat -c %U "$state"), and you are $(id -un)" \
      "run make as $(stat -c %U "$state"), without sudo (it asks for it when needed); or delete $state as its owner"
  fi
}

main() {
  servers=yes kind=local
  if [ "${1:-}" = --install-packages ]; then
    shift
    install_packages "$@"
    return
  fi
  local flag
  for flag in "$@"; do
    case $flag in
    --dev) kind=dev ;;
    --no-servers) servers=no ;;
    *)
      echo "usage: $self [--dev] [--no-servers]" >&2
      exit 2
      ;;
    esac
  done

  check_owner
  if is_current && { [ "$servers" = no ] || { has_rabbitmq && has_postgresql; }; }; then
    return
  fi
  mkdir -p "$state"
  exec 9>"$state/setup.lock"
  flock 9 # two makes at the same time: the second one waits, and finds all done
  : >"$log"
  python=$(find_python || true)
  ensure_packages
  is_current && return
  [ -n "$python" ] || python=$(find_python) ||
    fail "finding Python" "no Python $minimum or newer that can make virtual environments, even after the installation" \
      "install python3 (>= $minimum) and python3-venv, then run make again"
  ensure_environment
  printf 'setup: done\n'
}

main "$@"
