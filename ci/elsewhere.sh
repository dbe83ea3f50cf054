# Servers that this machine's distribution has no package of (sourced by ci/server).
#
# A function that provides one returns 3 where that is not in its hands: see ci/server.

packages_elsewhere() {
    echo debootstrap $([ -z "$(emulator)" ] || echo qemu-user-static)
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

# ---- a tree: all programs of another release of Debian, or of Ubuntu, entered by chroot ----

tree_server() {
    local suite pgc=/usr/lib/postgresql/$major/bin/pg_config name tree
    case $major in
        15) name=debian-bookworm ;;
        16) name=ubuntu-noble ;;
        17) name=debian-trixie ;;
        18 | 19) name=debian-sid ;;
    esac
    suite=${name#*-}
    [ "${architecture:=$(dpkg --print-architecture)}" = "$(dpkg --print-architecture)" ] || name+=-$architecture
    tree=$LBT_CACHE/$name
    lock_cache "$name" || return
    as_root unshare --mount --propagation private mount -t tmpfs tmpfs /mnt 2>/dev/null ||
        { log "PostgreSQL $major of $name runs in a tree of its own, which wants root and mount()"; return 3; }
    [ -z "$(emulator)" ] || need_packages $(packages_elsewhere) || return
    [ -e "$tree/etc/learnedbtree" ] || make_tree "$suite" "$tree" ||
        { log "no tree $name can be had: is the archive in reach?"; return 3; }
    if [ ! -x "$tree$pgc" ]; then
        log "installing PostgreSQL $major in $tree"
        "$here/inside" "$tree" apt-get -qq update >"$LBT_CACHE/$name.log" 2>&1 </dev/null &&
            "$here/inside" "$tree" apt-cache show "postgresql-server-dev-$major" >/dev/null 2>&1 ||
            { log "the archive has no PostgreSQL $major in $name, or is not in reach"; return 3; }
        "$here/inside" "$tree" apt-get -y -qq --no-install-recommends install "postgresql-$major" \
            "postgresql-server-dev-$major" make gcc libc6-dev libicu-dev libipc-run-perl \
            </dev/null >"$LBT_CACHE/$name.log" 2>&1 ||
            { tail -n 20 "$LBT_CACHE/$name.log" >&2; log "PostgreSQL $major of $name cannot be installed"; return 1; }
    fi
    case "$("$here/inside" "$tree" "$pgc" --version)" in
        "PostgreSQL $major"[.a-z]*) echo "$tree$pgc" ;;
        *) log "the PostgreSQL $major in $tree does not run"; return 1 ;;
    esac
}

make_tree() { # SUITE TREE
    local suite=$1 tree=$2 archive
    log "making a tree $name for $architecture: some minutes, 1 GB"
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
    case $suite in
        noble)
            archive=$(awk '{ print $2; exit }' "$tree.new/etc/apt/sources.list")
            printf 'deb %s main universe\n' "$archive noble" "$archive noble-updates" "$archive noble-security" ;;
        sid) printf 'deb %s main\n' "$archive sid" "$archive experimental" ;;
        *) echo "deb $archive $suite main" ;;
    esac | as_root tee "$tree.new/etc/apt/sources.list" >/dev/null
    # What sid has not, and from the same source package; nothing else comes from experimental.
    printf '%s\n' 'Package: src:postgresql-19' 'Pin: release a=experimental' 'Pin-Priority: 500' |
        as_root tee "$tree.new/etc/apt/preferences.d/learnedbtree" >/dev/null
    emulator | as_root tee "$tree.new/etc/learnedbtree" >/dev/null      # ci/inside reads it
    as_root mv "$tree.new" "$tree"
}

# The second half runs programs of the tree.  Ubuntu's first half is done in the tree of trixie, whose debootstrap knows
# noble, its archive and its keys.
bootstrap() { # SUITE FOLDER ARCHIVE
    local arguments=(--variant=minbase "--arch=$architecture") trixie
    [ -z "$(emulator)" ] || arguments+=(--foreign)
    if [ "$1" != noble ]; then as_root debootstrap "${arguments[@]}" "$@" || return
    else
        trixie=$(major=17 architecture=; tree_server) || return
        trixie=${trixie%/usr/lib/postgresql/*}
        as_root rm -rf --one-file-system "$trixie/noble"
        "$here/inside" "$trixie" sh -ec 'apt-get -qq update
            apt-get -y -qq --no-install-recommends install debootstrap ubuntu-keyring
            exec debootstrap "$@"' sh "${arguments[@]}" noble /noble && as_root mv "$trixie/noble" "$2" || return
    fi
    [ -z "$(emulator)" ] || { emulator | as_root tee "$2/etc/learnedbtree" >/dev/null &&
        "$here/inside" "$2" /debootstrap/debootstrap --second-stage; }
}
