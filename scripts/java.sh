#!/usr/bin/env bash
# Print the home of a Java that Spark can use: 17 or newer, with the module jdk.incubator.vector.
# If there is none, install Debian's, if that needs no password.
set -euo pipefail

readonly OLDEST=17

usable() { # HOME -> status 0 if its java can run Spark
    [ -x "$1/bin/java" ] || return 1
    local version
    version=$("$1/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$version" ] && [ "$version" -ge "$OLDEST" ] || return 1
    # Not `| grep -q`: it closes the pipe early, which pipefail would count as a failure.
    [[ "$("$1/bin/java" --list-modules 2>/dev/null)" == *jdk.incubator.vector* ]]
}

find_java() { # print the first usable home: JAVA_HOME, then PATH, then /usr/lib/jvm
    local home program
    if [ -n "${JAVA_HOME:-}" ] && usable "$JAVA_HOME"; then
        echo "$JAVA_HOME"
        return
    fi
    if program=$(command -v java); then
        home=$(dirname "$(dirname "$(readlink -f "$program")")")
        if usable "$home"; then
            echo "$home"
            return
        fi
    fi
    for home in /usr/lib/jvm/*; do
        if [ ! -L "$home" ] && usable "$home"; then
            echo "$home"
            return
        fi
    done
    return 1
}

install_java() { # Debian's packages; 21 if a newer Debian no longer has 17
    local install="$(dirname "$0")/debian.sh" version
    for version in "$OLDEST" 21; do
        if "$install" "Java $OLDEST or newer" "openjdk-$version-jre-headless"; then
            return
        fi
    done
    return 1
}

if ! find_java && ! { install_java && find_java; }; then
    echo "Spark needs Java $OLDEST or newer: install it (Debian: apt-get install openjdk-17-jre-headless)" \
        "or set JAVA_HOME, then run this again." >&2
    exit 1
fi
