#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Proves that the repository needs nothing but Debian 12: makes a minimal one in a folder, clones HEAD into it, and runs
# demo.sh and test.sh there. Uses this machine's Debian mirror, apt proxy and name servers. Needs root and debootstrap.
#   scripts/fresh.sh FOLDER [COMMAND...]     default commands: scripts/demo.sh scripts/test.sh
# The folder is kept; a second run with the same folder clones again but does not install again.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || { echo "usage: scripts/fresh.sh FOLDER [COMMAND...]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- scripts/demo.sh scripts/test.sh
[ "$(id -u)" -eq 0 ] || { echo "fresh.sh: must run as root (debootstrap and chroot)" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "fresh.sh: apt-get install debootstrap" >&2; exit 1; }

# The Debian archives this machine uses, as "uri suite" lines.
archives() {
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $3 ~ /^bookworm/ { print $2, $3 }' | sort -u
}

if [ ! -x "$folder/usr/bin/apt-get" ]; then
  mirror=$(archives | awk '$2 == "bookworm" { print $1; exit }')
  debootstrap --variant=minbase bookworm "$folder" "${mirror:-http://deb.debian.org/debian}"
  if [ -n "$mirror" ]; then
    archives | sed 's/^/deb /; s/$/ main/' >"$folder/etc/apt/sources.list"
  fi
  apt-config dump | grep -E '^Acquire::(https?::|Check-)' >"$folder/etc/apt/apt.conf.d/90host" || true
fi
cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
rm -rf "$folder/root/tgc"
git clone -q --no-hardlinks "$repository" "$folder/root/tgc"

# A mount namespace of its own: /proc and /dev go away with it, whatever happens.
cat >"$folder/root/run" <<'RUN'
set -e
cd /root/tgc
for command in "$@"; do
  echo "== fresh: $command"
  $command
done
RUN
unshare --mount bash -c '
  mount -t proc proc "$0/proc"
  mount --rbind /dev "$0/dev"
  exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LC_ALL=C.UTF-8 bash /root/run "$@"
' "$folder" "$@"
