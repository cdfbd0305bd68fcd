# What scripts share that run Braid between network namespaces. They source it.
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"
missing=()

# need COMMAND PACKAGE: notes the package if the command is missing.
need() { command -v "$1" > /dev/null || missing+=("$2"); }

# Installs packages, or fails. Needs root.
install() {
    [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null || return
    echo "${0##*/}: installing with apt-get: $*" >&2
    apt-get update -q > /dev/null && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@" > /dev/null
}

# Calls `skip REASON` unless namespaces and veth devices can be made, and what the caller needs is there
# or can be installed. The caller's `skip` ends the script.
prepare_namespaces() {
    [ "$(id -u)" = 0 ] || skip "this needs root"
    need python3 python3; need ip iproute2; need sysctl procps; need ethtool ethtool
    need nft nftables; need curl curl; need wrk wrk; need nginx nginx-light
    [ ${#missing[@]} = 0 ] || install "${missing[@]}" || skip "install ${missing[*]}"
    missing=()
    local trial=braid-trial-$$ works=yes
    ip netns add "$trial" 2> /dev/null || skip "no network namespaces can be made here"
    ip -n "$trial" link add braid-a type veth peer name braid-b 2> /dev/null || works=
    ip netns del "$trial"
    [ -n "$works" ] || skip "no veth devices can be made here"
}

# The folder that cargo builds in.
target_folder() {
    cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}
