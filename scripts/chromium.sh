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

if ! find_chromium && ! { "$(dirname "$0")/debian.sh" Chromium chromium && find_chromium; }; then
    echo "The tests of the report need Chromium: install it (Debian: apt-get install chromium)" \
        "or say where it is with CHROMIUM=/path/to/it, then run this again." >&2
    exit 1
fi
