#!/bin/bash
# SPDX-License-Identifier: MIT
# debian - Debian packages: probing, python3-probing and probing-doc.
#
# Usage: scripts/debian [FOLDER]
# Makes a release archive of this tree, builds the packages from it without a network, and writes them into FOLDER
# (default: dist/), with what lintian says on stderr. Needs the packages of `scripts/packages build`, debhelper and dh-python.
set -euo pipefail
here=$PWD
cd "$(dirname "$(readlink -f "$0")")/.."

fail() {
	echo "debian: $*" >&2
	exit 1
}

folder=${1:-dist}
[[ $folder = /* ]] || [ $# -eq 0 ] || folder=$here/$folder
mkdir -p "$folder"
folder=$(readlink -f "$folder")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

[ -f build-portable/build.ninja ] || meson setup --buildtype=release -Dtests=false build-portable >"$stage/log" ||
	{ cat "$stage/log" >&2; exit 1; }
meson dist -C build-portable --no-tests --allow-dirty --formats gztar >"$stage/log" 2>&1 || { cat "$stage/log" >&2; exit 1; }
archive=$(ls build-portable/meson-dist/probing-*.tar.gz)
version=$(dpkg-parsechangelog -S Version -l debian/changelog)
cp "$archive" "$stage/probing_${version%-*}.orig.tar.gz"
mkdir "$stage/source"
tar -xzf "$archive" -C "$stage/source" --strip-components=1
cp -r debian "$stage/source/"
(cd "$stage/source" && dpkg-buildpackage -us -uc -b -j1) >"$stage/log" 2>&1 || { tail -n 40 "$stage/log" >&2; fail "the build failed"; }
cp "$stage"/*.deb "$folder/"
if command -v lintian >/dev/null; then
	lintian --fail-on error,warning "$stage"/*.changes >&2 || fail "lintian has found mistakes"
fi
ls "$folder"/*probing*.deb
