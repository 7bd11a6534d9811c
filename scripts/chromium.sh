#!/usr/bin/env bash
# Print the path of a Chromium for the tests of the report. If there is none, install Debian's, if that needs no
# password.
set -euo pipefail

find_chromium() { # CHROMIUM, then PATH
    local name program
    for name in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome; do
        if program=$(command -v "$name"); then
            echo "$program"
            return
        fi
    done
    return 1
}

install_chromium() {
    local as_root=()
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
        as_root=(sudo -n)
    fi
    echo "Chromium not found: installing it with apt-get" >&2
    "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 || true
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1
}

if ! find_chromium && ! { install_chromium && find_chromium; }; then
    echo "The tests of the report need Chromium: install it (Debian: apt-get install chromium)" \
        "or say where it is with CHROMIUM=/path/to/it, then run this again." >&2
    exit 1
fi
