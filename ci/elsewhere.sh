# Servers that this machine's distribution has no package of (sourced by ci/server).
#
# A function that provides one returns 3 where that is not in its hands: see ci/server.

packages_elsewhere() {
    case $major$architecture in
        16) echo python3 python3-pip unzip make gcc libc6-dev dpkg-dev ;;
        *) echo debootstrap $([ -z "$(emulator)" ] || echo qemu-user-static) ;;
    esac
}

# What qemu calls the architecture; nothing for one whose programs this machine runs by itself.
emulator() {
    case $(dpkg --print-architecture)/$architecture in
        amd64/i386) ;;
        "$architecture/$architecture") ;;
        */amd64) echo x86_64 ;;
        */arm64) echo aarch64 ;;
        */armhf) echo arm ;;
        */ppc64el) echo ppc64le ;;
        *) echo "$architecture" ;;
    esac
}

# ---- a Debian tree: all programs of another release, entered by chroot ----

tree_server() {
    local suite pgc=/usr/lib/postgresql/$major/bin/pg_config name tree
    case $major in
        15) suite=bookworm ;;
        17) suite=trixie ;;
        18 | 19) suite=sid ;;
        *) log "no release of Debian has PostgreSQL $major"; return 1 ;;
    esac
    name=debian-$suite
    [ "${architecture:=$(dpkg --print-architecture)}" = "$(dpkg --print-architecture)" ] || name+=-$architecture
    tree=$LBT_CACHE/$name
    lock_cache "$name" || return
    as_root unshare --mount --propagation private mount -t tmpfs tmpfs /mnt 2>/dev/null ||
        { log "PostgreSQL $major of Debian $suite runs in a tree of its own, which wants root and mount()"; return 3; }
    [ -z "$(emulator)" ] || need_packages $(packages_elsewhere) || return
    [ -e "$tree/etc/learnedbtree" ] || make_tree "$suite" "$tree" ||
        { log "no tree $name can be had: is the archive in reach?"; return 3; }
    if [ ! -x "$tree$pgc" ]; then
        log "installing PostgreSQL $major in $tree"
        "$here/inside" "$tree" apt-get -qq update >"$LBT_CACHE/$name.log" 2>&1 </dev/null &&
            "$here/inside" "$tree" apt-cache show "postgresql-server-dev-$major" >/dev/null 2>&1 ||
            { log "the archive has no PostgreSQL $major in Debian $suite, or is not in reach"; return 3; }
        "$here/inside" "$tree" apt-get -y -qq --no-install-recommends install "postgresql-$major" \
            "postgresql-server-dev-$major" make gcc libc6-dev libicu-dev libipc-run-perl \
            </dev/null >"$LBT_CACHE/$name.log" 2>&1 ||
            { tail -n 20 "$LBT_CACHE/$name.log" >&2; log "PostgreSQL $major of Debian $suite cannot be installed"; return 1; }
    fi
    case "$("$here/inside" "$tree" "$pgc" --version)" in
        "PostgreSQL $major"[.a-z]*) echo "$tree$pgc" ;;
        *) log "the PostgreSQL $major in $tree does not run"; return 1 ;;
    esac
}

make_tree() { # SUITE TREE
    local suite=$1 tree=$2 archive
    log "making a tree of Debian $suite for $architecture: some minutes, 1 GB"
    need_packages $(packages_elsewhere) || return
    archive=$(debian_archive) || return
    as_root rm -rf --one-file-system "$tree" "$tree.new"
    bootstrap "$suite" "$tree.new" "$archive" >"$LBT_CACHE/$name.log" 2>&1 || return
    # How this machine reaches the archive, no services, no clusters of their own.
    as_root cp -R /etc/apt/apt.conf.d/. "$tree.new/etc/apt/apt.conf.d/"
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$tree.new/usr/sbin/policy-rc.d" >/dev/null
    as_root chmod 755 "$tree.new/usr/sbin/policy-rc.d"
    as_root mkdir -p "$tree.new/etc/postgresql-common/createcluster.d"
    echo "create_main_cluster = false" | as_root tee "$tree.new/etc/postgresql-common/createcluster.d/learnedbtree.conf" >/dev/null
    {
        echo "deb $archive $suite main"
        [ "$suite" != sid ] || echo "deb $archive experimental main"
    } | as_root tee "$tree.new/etc/apt/sources.list" >/dev/null
    # What sid has not, and from the same source package; nothing else comes from experimental.
    printf '%s\n' 'Package: src:postgresql-19' 'Pin: release a=experimental' 'Pin-Priority: 500' |
        as_root tee "$tree.new/etc/apt/preferences.d/learnedbtree" >/dev/null
    emulator | as_root tee "$tree.new/etc/learnedbtree" >/dev/null      # ci/inside reads it
    as_root mv "$tree.new" "$tree"
}

# The second half runs programs of the tree.
bootstrap() { # SUITE FOLDER ARCHIVE
    local arguments=(--variant=minbase "--arch=$architecture")
    if [ -z "$(emulator)" ]; then as_root debootstrap "${arguments[@]}" "$@"; return; fi
    as_root debootstrap --foreign "${arguments[@]}" "$@" && emulator | as_root tee "$2/etc/learnedbtree" >/dev/null &&
        "$here/inside" "$2" /debootstrap/debootstrap --second-stage
}

# ---- 16: the Python package pgserver has a whole server with headers, configured without ICU ----
#
# It comes without contrib and without the Perl modules of TAP tests.  15's do: their sources need but two lines more.

wheel_server() {
    local to=$LBT_CACHE/pg16-stock pgc=$LBT_CACHE/pg16-stock/bin/pg_config work server
    lock_cache pg16-stock || return
    if fits "$pgc"; then echo "$pgc"; return; fi
    log "fetching PostgreSQL 16 from the Python package pgserver"
    need_packages $(packages_elsewhere) && "$here/server" 15 stock >/dev/null || return
    work=$(mktemp -d "${TMPDIR:-/tmp}/lbt-server.XXXXXX")
    trap "rm -rf '$work'" EXIT
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
        --platform "manylinux_2_17_$(uname -m)" -d "$work" pgserver==0.1.4 >&2 &&
    unzip -q "$work"/pgserver-*.whl -d "$work" || { log "the Python package pgserver, which has PostgreSQL 16, cannot be had"; return 3; }
    server=$work/pgserver/pginstall
    chmod a+x "$server"/bin/* "$server"/lib/postgresql/pgxs/src/test/{regress/pg_regress,isolation/*}
    if ! { fetch_source 15 "$work" && add_contrib "$work/src/contrib" "$server/bin/pg_config"; } >"$work/log" 2>&1; then
        tail -n 20 "$work/log" >&2
        log "amcheck and others for PostgreSQL 16 could not be built"
        return 1
    fi
    cp -R /usr/lib/postgresql/15/lib/pgxs/src/test/perl "$server/lib/postgresql/pgxs/src/test/"
    # Its programs find their libraries two folders up: the package's layout stays as it is.
    rm -rf "$to" "$to.new"
    mkdir "$to.new"
    mv "$work"/pgserver{,.libs} "$to.new/"
    ln -s pgserver/pginstall/bin "$to.new/bin"
    chmod -R a+rX "$to.new"
    mv "$to.new" "$to"
    fits "$pgc" || { log "the PostgreSQL 16 of pgserver is incomplete"; return 1; }
    echo "$pgc"
}

add_contrib() { # FOLDER PG_CONFIG: with -w, as 15's calls of macros become calls of functions of other types
    local module
    sed -i 's/_bt_search(state->rel, key,/_bt_search(state->rel, state->heaprel, key,/' "$1/amcheck/verify_nbtree.c" &&
    for module in amcheck auto_explain citext pageinspect intagg; do
        make -s -C "$1/$module" USE_PGXS=1 PG_CONFIG="$2" with_llvm=no install \
            COPT="-w -include postgres.h -include varatt.h -include utils/guc.h -Dpg_mblen_cstr=pg_mblen" || return
    done
}
