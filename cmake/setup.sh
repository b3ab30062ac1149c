# Sourced by tests/run.sh and .ci/run: sees to it that cmake (3.21 or newer) and ninja can be called. They come from the
# system, else from apt as root, else as python wheels into a virtual environment in the build directory.
#
#   . cmake/setup.sh && arenite_setup BUILD_DIRECTORY [apt package...]

arenite_apt() {
    command -v apt-get >/dev/null || return 1
    local as=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
        as="sudo -n"
    fi
    $as apt-get update -qq >/dev/null && $as env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

arenite_cmake_is_usable() {
    command -v cmake >/dev/null && command -v ninja >/dev/null || return 1
    local version
    version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    set -- $version
    [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 21 ]; }
}

arenite_setup() {
    local build=$1
    shift
    if [ $# -gt 0 ]; then
        arenite_apt "$@" || echo "note: not installed: $*" >&2
    fi
    arenite_cmake_is_usable && return
    echo "cmake or ninja is missing: installing" >&2
    arenite_apt cmake ninja-build && arenite_cmake_is_usable && return
    local tools=$build/tools
    mkdir -p "$tools"
    tools=$(cd "$tools" && pwd)
    if python3 -m venv "$tools" && "$tools/bin/pip" install --quiet cmake ninja; then
        PATH=$tools/bin:$PATH
        export PATH
    fi
    hash -r
    arenite_cmake_is_usable && return
    echo "cmake 3.21 and ninja are needed: install them, or run this as root, or install python3-venv" >&2
    return 1
}
