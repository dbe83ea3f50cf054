# The library that test/run has built, on the first and the newest minor of its major version (sourced by test/run).
#
# Binaries of all minors, without headers and clients, are io.zonky.test.postgres:embedded-postgres-binaries-linux-*,
# fetched once by Maven and kept beside the servers of ci/.  Which is the newest is asked for once a day.  Inside a
# tree of ci/server there is no Maven: test/run fetches before it goes there, and names the folder in LBT_MINORS.

minors=${LBT_MINORS:-$LBT_CACHE/minors}

# Have minors/MAJOR name what there is.  False when nothing can be had; the last line on stderr says why.
fetch_minors() { # MAJOR
    local major=$1 work arch status=0
    case $(uname -m) in
        x86_64) arch=amd64 ;;
        aarch64) arch=arm64v8 ;;
        *) echo "no binaries for this kind of processor" >&2; return 1 ;;
    esac
    mkdir -p "$minors" && exec 7>"$minors/lock" && flock -w 600 7 || return
    if [ -z "$(find "$minors/$major" -mmin -1440 2>/dev/null)" ]; then
        work=$(mktemp -d "${TMPDIR:-/tmp}/lbt-minors.XXXXXX") || return
        bring_minors "$major" "embedded-postgres-binaries-linux-$arch" "$work" >"$work/log" 2>&1 || status=1
        if [ "$status" != 0 ] && [ ! -e "$minors/$major" ]; then
            grep -E 'ERROR|error|not found|E: ' "$work/log" | head -n 3 >&2
            echo "their binaries cannot be had by Maven" >&2
        else status=0
        fi
        rm -rf "$work"
    fi
    exec 7>&-
    return "$status"
}

bring_minors() { # MAJOR ARTIFACT FOLDER
    local plugin=org.apache.maven.plugins:maven-dependency-plugin:3.6.1 group=io.zonky.test.postgres first=$1.0.0 newest jar
    [ "$1" != 15 ] || first=15.1.0      # of 15.0 there is none
    command -v mvn && need_packages unzip xz-utils || return
    cat >"$3/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>learnedbtree</groupId> <artifactId>minors</artifactId> <version>1</version> <packaging>pom</packaging>
  <dependencies>
    <dependency> <groupId>$group</groupId> <artifactId>$2</artifactId> <version>[$1,$1.999]</version> </dependency>
  </dependencies>
</project>
END
    timeout -k 10 60 mvn -q -B -U -f "$3/pom.xml" "$plugin:copy-dependencies" -DoutputDirectory="$3/newest" </dev/null || return
    jar=$(echo "$3"/newest/*.jar)
    newest=${jar##*-}
    newest=${newest%.jar}
    unpack_minor "$newest" "$jar" "$3" || return
    if [ ! -d "$minors/$first" ]; then
        timeout -k 10 60 mvn -q -B "$plugin:copy" "-Dartifact=$group:$2:$first" -DoutputDirectory="$3" </dev/null &&
            unpack_minor "$first" "$3/$2-$first.jar" "$3" || return
    fi
    printf '%s\n' "$first" "$newest" | uniq >"$3/list" && mv "$3/list" "$minors/$1"
}

unpack_minor() { # VERSION JAR FOLDER
    [ ! -d "$minors/$1" ] || return 0
    rm -rf "$minors/$1.new"
    mkdir "$minors/$1.new" && unzip -q -p "$2" '*.txz' >"$3/$1.txz" && tar -xJf "$3/$1.txz" -C "$minors/$1.new" &&
        chmod -R a+rX "$minors/$1.new" && mv "$minors/$1.new" "$minors/$1"
}

# Fetch, and copy into a tree, which then has them at the same path.
minors_into() { # TREE MAJOR
    local version
    fetch_minors "$2" || return
    as_root mkdir -p "$1$minors" || return
    while read -r version; do
        [ -d "$1$minors/$version" ] || as_root cp -R "$minors/$version" "$1$minors/" || return
    done <"$minors/$2"
    as_root cp "$minors/$2" "$1$minors/"
}

run_minors() {
    local minor why
    if [ -n "$sanitize$suppressions" ]; then note "minors: left out where the library is instrumented"; return; fi
    if test/check-later learnedbtree.so >"$scratch/later.log" 2>&1; then ok later/library
    else not_ok later/library "$scratch/later.log"
    fi
    if [ -z "${LBT_MINORS:-}" ]; then
        why=$(fetch_minors "$major" 2>&1) || { note "NOT TESTED  minors of $major: $(tail -n 1 <<<"$why")"; return; }
    elif [ ! -e "$minors/$major" ]; then
        note "NOT TESTED  minors of $major: their binaries cannot be had by Maven"
        return
    fi
    while read -r minor; do
        [ "$minor" != "${version%% *}.0" ] || continue  # all other tests run on that one
        wanted minors "$minor" && start_job "minor-$minor" run_minor "$minor"
    done <"$minors/$major"
}

# One test for the symbols, one for the statements.
run_minor() { # VERSION
    local name=minors/$1 outer=$scratch client=psql collation=C began=$SECONDS server_pid=
    local scratch=$outer/minor-$1 bindir=$outer/minor-$1/server/bin
    ! grep -q '^#define USE_ICU 1' "$("$pgc" --includedir-server)/pg_config.h" || collation=en-x-icu
    [ ! -x "$("$pgc" --bindir)/psql" ] || client=$("$pgc" --bindir)/psql
    as_user 60 mkdir "$scratch" && as_user 60 cp -R "$minors/$1" "$scratch/server" &&
        as_user 60 cp -R "$outer/tree" "$scratch/tree" && cd "$scratch/tree" || { not_ok "$name"; return; }
    name_icu >"$scratch/icu.log" 2>&1 || { not_ok "$name" "$scratch/icu.log"; return; }
    unknown_symbols >"$scratch/symbols.log"
    if [ -s "$scratch/symbols.log" ]; then not_ok "$name has all symbols" "$scratch/symbols.log"
    else ok "$name has all symbols"
    fi
    as_user 60 cp learnedbtree.so "$scratch/server/lib/postgresql/" &&
        as_user 60 cp learnedbtree.control sql/learnedbtree--*.sql "$scratch/server/share/postgresql/extension/" ||
        { not_ok "$name"; return; }
    start_minor || {
        cat "$scratch/server.log" >>"$scratch/start.log" 2>/dev/null
        not_ok "$name starts with the library" "$scratch/start.log" 15
        return
    }
    mapfile -t where < <(connection)
    if as_user 300 "$client" "${where[@]/--user=/--username=}" -X -q -v text_collation="$collation" -f test/minors.sql \
        postgres >"$scratch/psql.log" 2>&1
    then
        ok "$name on $("$bindir/postgres" --version | sed 's/.* //'), built on $version ($((SECONDS - began)) s)"
    else
        not_ok "$name" "$scratch/psql.log" 20
        outputs+=("$scratch/server.log")
    fi
    stop_server
}

# Functions of ICU have its version in their names, and these servers have their own: call its functions.
name_icu() {
    local theirs ours symbol renamed=()
    theirs=$(nm -D --undefined-only "$bindir/postgres" | sed -n 's/.* ucol_open_\([0-9]*\)$/\1/p')
    while read -r symbol; do
        ours=${symbol##*_}
        [ "$ours" = "$theirs" ] || renamed+=(--redefine-sym "$symbol=${symbol%_*}_$theirs")
    done < <(nm -D --undefined-only learnedbtree.so | sed -n 's/.* \(u[a-z]*_[A-Za-z]*_[0-9][0-9]\)$/\1/p')
    [ -n "$theirs" ] && [ ${#renamed[@]} -gt 0 ] || return 0
    find src -name '*.o' | while read -r symbol; do as_user 60 objcopy "${renamed[@]}" "$symbol" || return; done &&
        rm -f learnedbtree.so && as_user 300 make -s PG_CONFIG="$pgc" all
}

# What the library wants, that this server and the libraries of its own do not have.  What has a version, as GLIBC_2.4,
# is not the server's.
unknown_symbols() {
    local theirs=$scratch/symbols
    nm -D --defined-only "$bindir/postgres" "$scratch"/server/lib/libicu*.so.* 2>/dev/null |
        awk 'NF == 3 { sub(/@.*/, "", $3); print $3 }' | sort -u >"$theirs"
    nm -D --undefined-only learnedbtree.so | sed -n 's/^ *U \([^@]*\)$/\1/p' | sort -u | comm -23 - "$theirs"
}

start_minor() {
    as_user 120 "$bindir/initdb" -D "$scratch/data" -A trust -U postgres --no-sync --locale=C.UTF-8 -E UTF8 \
        >"$scratch/start.log" 2>&1 && as_user 10 mkdir "$scratch/socket" || return
    { settings; echo "shared_preload_libraries = 'learnedbtree'"; } >>"$scratch/data/postgresql.conf"
    as_user 120 "$bindir/pg_ctl" -D "$scratch/data" -l "$scratch/server.log" -w -t 60 start \
        >>"$scratch/start.log" 2>&1 || return
    server_pid=$(head -n 1 "$scratch/data/postmaster.pid")
}
