# Shared by the scripts of ci/, test/ and bench/ (sourced): where things are kept, how root is asked for.

if [ -z "${LBT_CACHE:-}" ]; then
    if [ "$(id -u)" = 0 ]; then LBT_CACHE=/var/cache/learnedbtree; else LBT_CACHE=$HOME/.cache/learnedbtree; fi
fi

# Run a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else echo "this step needs root, and there is no sudo: $*" >&2; return 1
    fi
}

# Once in a run: apt-cache and apt-get install know nothing on a fresh machine.
update_package_lists() {
    [ -n "${LBT_APT_UPDATED:-}" ] || { as_root apt-get -qq update >&2; export LBT_APT_UPDATED=1; }
}

# A server package must not start a cluster of its own on this machine.
quiet_server_package() {
    need_packages postgresql-common
    if [ ! -e /etc/postgresql ] || [ -z "$(ls -A /etc/postgresql 2>/dev/null)" ]; then
        as_root mkdir -p /etc/postgresql-common/createcluster.d
        echo "create_main_cluster = false" |
            as_root tee /etc/postgresql-common/createcluster.d/learnedbtree.conf >/dev/null
    fi
}

# Install the Debian packages that are missing; nothing is touched when all are there.
need_packages() {
    local missing=() p
    for p in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing: ${missing[*]}" >&2
    update_package_lists
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}
