#!/bin/sh
# usage: with-node.sh FILE [argument...]
# Runs a file of the project under its own Node 24; package.json brings one along where the machine's is older.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)

if [ ! -d "$here/node_modules/commander" ]; then
  echo "sluice: its packages are missing; run \`npm ci\` in $here first" >&2
  exit 2
fi

node=$here/node_modules/.bin/node
[ -x "$node" ] || node=node
version=$("$node" --version 2>/dev/null) || version=none
major=${version#v}
major=${major%%.*}
if [ "$version" = none ] || [ "$major" -lt 24 ]; then
  echo "sluice: needs Node 24 or newer, found $version; install one and put it on PATH" >&2
  exit 2
fi

# What Node has compiled once it need not compile at the next start: a command takes half as long to be there.
NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE:-$here/.cache/compiled}
export NODE_COMPILE_CACHE

file=$here/$1
shift
exec "$node" --disable-warning=ExperimentalWarning "$file" "$@"
