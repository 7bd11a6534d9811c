#!/usr/bin/env bash
# Install Debian packages where they are missing: debian.sh NAME PACKAGE..., where NAME is what the message calls them.
# Needs root, or sudo without a password; else status 1. Of several calls at once, one installs and the others wait for
# it. What apt says is shown where it fails.
set -euo pipefail

readonly PATIENCE=600 # seconds to wait for another apt

name=$1
shift
command -v apt-get >/dev/null || exit 1
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || exit 1
    as_root=(sudo -n)
fi

exec 9</var/lib/apt # any user may open this folder, so all checkouts of the machine share the lock
flock 9
is_installed() {
    local package
    for package; do
        [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || return 1
    done
}
is_installed "$@" && exit 0

echo "$name not found: installing it with apt-get" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { # COMMAND...
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o "DPkg::Lock::Timeout=$PATIENCE" "$@" >>"$log" 2>&1 9<&-
}
# Lists that could not be fetched may still be there from before.
apt update || true
if ! apt install -y --no-install-recommends "$@"; then
    echo "apt-get could not install $*:" >&2
    tail -n 20 "$log" | sed -E 's#[A-Za-z+]+://[^[:space:]]+#(address)#g' >&2
    exit 1
fi
