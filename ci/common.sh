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

# apt-get without its lines, unless it fails.
apt_quietly() {
    local log status=0
    log=$(mktemp) || return
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq "$@" >"$log" 2>&1 </dev/null || status=$?
    [ "$status" = 0 ] || tail -n 30 "$log" >&2
    rm -f "$log"
    return "$status"
}

# Once in a run: apt-cache and apt-get install know nothing on a fresh machine.
update_package_lists() {
    [ -n "${LBT_APT_UPDATED:-}" ] || { apt_quietly update; export LBT_APT_UPDATED=1; }
}

missing_packages() { # PACKAGE...: those that are not installed
    local p
    for p in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
    done
}

# What apt would bring for these packages: a line with the names of all, then megabytes to download and on disk.
package_plan() { # PACKAGE...
    local all
    all=$(apt-get -s -qq install --no-install-recommends "$@" 2>/dev/null | sed -n 's/^Inst \([^ ]*\).*/\1/p')
    [ -n "$all" ] || return 0
    echo $all
    apt-cache show --no-all-versions $all 2>/dev/null |
        awk '/^Size:/ { load += $2 } /^Installed-Size:/ { disk += $2 } END { printf "%.0f %.0f\n", load / 1e6 + 0.5, disk / 1024 + 0.5 }'
}

# Install the Debian packages that are missing; nothing is touched when all are there.
need_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing: ${missing[*]}" >&2
    update_package_lists
    apt_quietly install --no-install-recommends "${missing[@]}"
}

# The same for packages of servers, which must not start a cluster of their own on this machine.
need_server_packages() (
    folder=/etc/postgresql-common/createcluster.d
    [ -n "$(missing_packages "$@")" ] || exit 0
    need_packages postgresql-common || exit
    made=
    [ -e "$folder" ] || made=yes
    trap 'as_root rm -f "$folder/learnedbtree.conf"; [ -z "$made" ] || as_root rmdir "$folder"' EXIT
    trap 'exit 130' INT TERM
    as_root mkdir -p "$folder" &&
    echo "create_main_cluster = false" | as_root tee "$folder/learnedbtree.conf" >/dev/null &&
    need_packages "$@"
)

# The archive this machine already uses for Debian itself.
debian_archive() {
    local archive
    archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u | grep -E '/debian/?$' | head -n 1)
    [ -n "$archive" ] || { echo "apt knows no Debian archive" >&2; return 1; }
    echo "$archive"
}

# Unpack the source of PostgreSQL MAJOR, from Debian's source package, into FOLDER/src.
fetch_source() { # MAJOR FOLDER
    local major=$1 folder=$2 archive suite try dsc apt_private
    archive=$(debian_archive) || return
    mkdir -p "$folder"/apt/{lists,cache/archives}/partial
    for suite in bookworm trixie forky sid experimental; do
        echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main"
    done >"$folder/apt/sources.list"
    apt_private=(-o "Dir::Etc::SourceList=$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
                 -o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache" -o APT::Sandbox::User=root
                 -o Acquire::Check-Valid-Until=false)	# an archive that lags behind will do; it is signed all the same
    for try in 1 2 3; do
        timeout 300 apt-get "${apt_private[@]}" -qq update >&2 && break
        echo "the package lists did not come (try $try)" >&2; sleep 5
    done
    for try in 1 2 3; do
        (cd "$folder" && timeout 600 apt-get "${apt_private[@]}" -qq source --download-only "postgresql-$major" >&2) && break
        echo "the source package did not come (try $try)" >&2; sleep 5
    done
    dsc=("$folder"/postgresql-"$major"_*.dsc)
    [ -e "${dsc[0]}" ] || { echo "no source package of PostgreSQL $major in the archive" >&2; return 1; }
    # Without Debian's patches: they move libraries to one place for all builds of a major version.
    (cd "$folder" && dpkg-source --no-check --skip-patches -x "${dsc[0]}" src >/dev/null)
}
