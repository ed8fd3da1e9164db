#!/bin/sh
# usage: debian-nats.sh FILE SUITE
#
# Puts the nats-server program of a Debian suite into FILE: apt fetches the package and checks its signature, from the
# mirror that this machine is configured for, with lists and cache of its own, so that nothing of the system changes
# and nobody has to be root. The suite `own` means the machine's own sources as they are.
set -eu
file=$1
suite=$2
keys=/usr/share/keyrings/debian-archive-keyring.gpg

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"

if [ "$suite" = own ]; then
  apt-get -qq download nats-server
else
  [ -r "$keys" ] || { echo "no $keys" >&2; exit 1; }
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' | grep -v security | head -n 1)
  [ -n "$mirror" ] || mirror=$(grep -rhoE 'https?://[^ ]*debian/?' /etc/apt/sources.list* | grep -v security | head -n 1)
  [ -n "$mirror" ] || { echo "apt knows no Debian mirror" >&2; exit 1; }
  mkdir -p lists/partial cache/archives/partial
  echo "deb [signed-by=$keys] $mirror $suite main" > sources.list
  own() {
    apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
      -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root \
      -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
  }
  own update
  own download nats-server
fi

dpkg-deb -x nats-server_*.deb unpacked
# Beside the target first: whoever looks at FILE sees no program or a whole one.
mkdir -p "$(dirname "$file")"
install -m 755 unpacked/usr/sbin/nats-server "$file.$$"
mv "$file.$$" "$file"
