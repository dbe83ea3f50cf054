# What test/run is made of (sourced by it).  Each step reports its tests with ok() and not_ok().

passed=0
failed=0
server_pid=
step_pid=
outputs=()          # files worth keeping after a failure
sanitize=           # yes: instrument our library
patience=${LBT_PATIENCE:-1}   # how many times as long as usual steps may take
suppressions=       # for valgrind: run the shared server under it
template=()         # a data folder to copy, as a variable of scripts
user_env=()         # further variables for commands that as_user() runs
clients_python=     # one with the packages of test/clients
bench_python=       # one with those of bench/
audit_python=       # one with those of test/audit
no_site=            # yes: the packages of doc/build could not be had
no_python=()        # steps whose Python packages could not be had
no_pypi=            # yes: pip has not reached its index
installed=          # the library that an instrumented one has replaced
jobs=1              # how many servers with tests may run at the same time

ok() { passed=$((passed + 1)); printf 'ok      %s\n' "$1"; }

not_ok() { # NAME [FILE]: FILE says why; its end is shown
    failed=$((failed + 1))
    printf 'FAILED  %s\n' "$1"
    if [ -n "${2:-}" ] && [ -s "$2" ]; then
        tail -n "${3:-60}" "$2" | sed 's/^/        /'
    fi
}

note() { printf '        %s\n' "$*"; }

# Is this step, or a test of it, asked for?
wanted() { # STEP [TEST]
    local item
    [ -n "$only" ] || return 0
    for item in ${only//,/ }; do
        case $item in
            "$1" | "$1/${2:-}") return 0 ;;
            "$1"/*) [ -n "${2:-}" ] || return 0 ;;
        esac
    done
    return 1
}

# room/NAME in a list becomes the tests of that room.
expand_rooms() { # LIST
    local item list= tests
    for item in ${1//,/ }; do
        if [[ $item == room/* ]]; then
            tests=$(awk -v room="${item#room/}" '$1 == room { $1 = ""; print }' "$root/test/rooms")
            [ -n "$tests" ] || { echo "test/run: test/rooms has no room ${item#room/}" >&2; return 1; }
            item=${tests//[[:space:]]/,}
        fi
        list+=,$item
    done
    tr -s , <<<"${list#,}"
}

# Part of a run of everything only for CI.
wants_beside() { if [ -n "$only" ]; then wanted beside; else [ -n "${LBT_BESIDE:-}" ]; fi; }

wants_shared() { wanted regress || wanted am || wanted isolation || wanted am-isolation || wanted catcheck; }

wants_server() { wants_shared || wanted symbols || wanted tap || wanted suites || wanted bench || wants_beside; }

# What the tests need, where apt is there to bring it.
install_packages() {
    local list=(make gcc libc6-dev perl) clang
    command -v apt-get >/dev/null || return 0
    if wanted tap || wanted suites; then list+=(libipc-run-perl); fi
    if [ -z "$skip_model" ] && wanted model; then list+=(clang xz-utils); fi
    if wanted minors && [ -z "${LBT_MINORS:-}" ]; then list+=(unzip xz-utils); fi
    need_packages "${list[@]}" || { note "packages could not be installed: ${list[*]}"; return 1; }
    if [ -z "$skip_model" ] && wanted model; then
        clang=$(clang -dumpversion 2>/dev/null)
        need_packages "libclang-rt-${clang%%.*}-dev" || note "no sanitizers for clang $clang"
    fi
    if wanted tap 038_clients; then
        clients_python=$LBT_CACHE/clients/bin/python
        install_python clients "$root/test/clients/requirements.txt" || { no_python+=(tap/038_clients); clients_python=; }
    fi
    if [ -z "$skip_model" ] && wanted audit; then
        audit_python=$LBT_CACHE/audit/bin/python
        install_python audit "$root/test/audit/requirements.txt" || { no_python+=(audit); audit_python=; }
    fi
    if [ -z "$skip_model" ] && wanted site; then
        install_python site "$root/doc/requirements.txt" || { no_python+=(site); no_site=yes; }
    fi
    if wanted bench; then
        bench_python=$LBT_CACHE/bench/bin/python
        install_python bench "$root/bench/requirements.txt" || { no_python+=(bench); bench_python=; }
        need_packages sysbench || note "no sysbench for bench"
    fi
    [ ${#no_python[@]} = 0 ] || note "Python packages could not be had ${no_pypi:+(pip does not reach its index) }for: ${no_python[*]}"
    [[ $bindir == /usr/lib/postgresql/"$major"/bin ]] || return 0
    if wanted catcheck; then
        need_packages "postgresql-$major-pg-catcheck" || note "no pg_catcheck for PostgreSQL $major"
    fi
    if wanted tap 025_hypopg; then
        need_packages "postgresql-$major-hypopg" || note "no HypoPG for PostgreSQL $major"
    fi
    if wanted tap 037_beside || wants_beside; then
        install_others
    fi
}

# Other extensions, those that Debian has for this server.
install_others() {
    local there=()
    mapfile -t there < <(known_others)
    if [ ${#there[@]} = 0 ]; then update_package_lists; mapfile -t there < <(known_others); fi
    [ ${#there[@]} = 0 ] || need_packages "${there[@]}" || note "packages could not be installed: ${there[*]}"
}

known_others() {
    local name
    for name in cron hypopg partman pg-hint-plan pglogical repack squeeze; do
        name=postgresql-$major-$name
        if apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [^(]'; then echo "$name"; fi
    done
}

# An environment with the Python packages of LIST, kept beside the servers.  The unprivileged user must be able to read it.
# If pip does not reach its index, it is not tried again, and its lines about that are left out.
install_python() { # NAME LIST
    local list=$2 folder=$LBT_CACHE/$1 said
    mkdir -p "$LBT_CACHE" && exec 8>"$LBT_CACHE/lock-$1" && flock -w 600 8 || return
    if ! cmp -s "$list" "$folder/requirements.txt"; then
        [ -z "$no_pypi" ] || return
        need_packages python3 python3-venv ca-certificates && rm -rf "$folder" && /usr/bin/python3 -m venv "$folder" || return
        if ! said=$(timeout 300 "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list" 2>&1); then
            if [[ $said == *Retrying* ]]; then no_pypi=yes; else echo "$said" >&2; fi
            return 1
        fi
        cp "$list" "$folder/" || return
    fi
    exec 8>&-
}

# Servers refuse to run as root.
choose_user() {
    user=$(id -un)
    [ "$(id -u)" = 0 ] || return 0
    user=postgres
    if ! id -u postgres >/dev/null 2>&1; then
        user=learnedbtree
        id -u "$user" >/dev/null 2>&1 || useradd --system --no-create-home --shell /bin/sh "$user"
    fi
}

# ---- jobs: functions that report tests, each in a process of its own ----
#
# What a job reports is shown when it has ended, at once, so lines of two jobs do not mix.  Its counts, and the files
# worth keeping, come back in a file beside its output.

running=()          # names of jobs under way
declare -A job_pid=()

start_job() { # NAME FUNCTION ARGUMENTS...; waits while as many jobs as may be are under way
    local name=$1; shift
    while [ ${#running[@]} -ge "$jobs" ]; do reap_jobs; done
    mkdir -p "$scratch/jobs"
    (
        trap 'if [ -n "$step_pid" ]; then kill "$step_pid" 2>/dev/null; wait "$step_pid"; fi; exit 130' INT TERM
        passed=0 failed=0 outputs=()
        "$@"
        declare -p passed failed outputs | sed 's/^declare -[^ ]* /declare -g /' >"$scratch/jobs/$name.new"
        mv "$scratch/jobs/$name.new" "$scratch/jobs/$name.end"
    ) >"$scratch/jobs/$name.out" 2>&1 &
    running+=("$name")
    job_pid[$name]=$!
}

# Wait until at least one job has ended, and report those that have.
reap_jobs() {
    local name left=()
    wait -n "${job_pid[@]}"
    for name in "${running[@]}"; do
        if kill -0 "${job_pid[$name]}" 2>/dev/null; then left+=("$name"); continue; fi
        wait "${job_pid[$name]}" 2>/dev/null
        report_job "$name"
        unset "job_pid[$name]"
    done
    running=("${left[@]}")
}

report_job() { # NAME
    local total=("$passed" "$failed") files=("${outputs[@]}")
    cat "$scratch/jobs/$1.out"
    if [ -e "$scratch/jobs/$1.end" ]; then
        . "$scratch/jobs/$1.end"
        passed=$((passed + total[0])) failed=$((failed + total[1])) outputs=("${files[@]}" "${outputs[@]}")
    else
        not_ok "$1 ends"
    fi
}

end_jobs() { while [ ${#running[@]} -gt 0 ]; do reap_jobs; done; }

# Run a command without privileges, for at most SECONDS.
as_user() { # SECONDS COMMAND...
    local limit=$1 switch=(); shift
    [ "$(id -u)" != 0 ] || switch=(runuser -u "$user" --)
    step "$limit" "${switch[@]}" env "HOME=$scratch" "PATH=$bindir:$PATH" LC_ALL=C LANG=C.UTF-8 TZ=UTC "${user_env[@]}" "$@"
}

# Run a command for at most SECONDS, in the background, so that a signal to this script is heard at once; finish_up()
# then ends the command.
step() { # SECONDS COMMAND...
    local limit=$1; shift
    timeout -k 10 "$limit" "$@" </dev/null &
    step_pid=$!
    wait "$step_pid"
    set -- $?
    step_pid=
    return "$1"
}

# A copy that the unprivileged user may read and write, and that several runs at once do not share.
copy_tree() {
    local part
    mkdir "$scratch/tree"
    for part in Makefile Dockerfile packaging META.json README.md CHANGELOG.md SECURITY.md learnedbtree.control debian doc sql src test expected bench/demo bench/demo_sql; do
        (cd "$root" && { [ ! -e "$part" ] || cp -R --parents "$part" "$scratch/tree/"; })
    done
    find "$scratch/tree" \( -name '*.o' -o -name '*.so' -o -name '*.bc' \) -delete
    rm -rf "$scratch/tree"/test/{unit,fuzz}/build
    [ "$(id -u)" != 0 ] || chown -R "$user" "$scratch"
}

run_logged() { # NAME SECONDS COMMAND...: one test that is one command
    local name=$1 limit=$2 log=$scratch/${1//\//-}.log; shift 2
    if as_user "$limit" "$@" >"$log" 2>&1; then ok "$name"; else not_ok "$name" "$log"; fi
    outputs+=("$log")
}

# What needs no server.  Builds are outside of the tree, which others copy.
run_model_tests() {
    wanted model unit && start_job unit run_logged unit 1800 make -s -j"$(nproc)" -C "$scratch/tree/test/unit" "BUILD_DIR=$scratch/unit" check
    wanted model fuzz && start_job fuzz run_logged fuzz 1800 make -s -j"$(nproc)" -C "$scratch/tree/test/fuzz" "BUILD_DIR=$scratch/fuzz" check
    start_job checks run_checks
}

run_checks() {
    cd "$scratch/tree" || return
    if wanted layers; then run_logged layers 300 test/check-layers; fi
    if wanted meta; then run_logged meta 300 test/check-meta; fi
    if wanted map; then run_logged map 300 test/check-map; fi
    if wanted later; then run_logged later 300 test/check-later; fi
    if wanted audit && [ -n "$audit_python" ]; then run_logged audit 300 "${audit_python%/python}/pgspot" sql/*.sql; fi
    if wanted site && [ -z "$no_site" ]; then build_site; fi
}

# By whoever runs us, from the checkout: all pages are there.
build_site() {
    local log=$scratch/site.log
    if step 600 "$root/doc/build" "$scratch/site" >"$log" 2>&1; then ok site; else not_ok site "$log"; fi
    outputs+=("$log")
}

build_library() {
    local log=$scratch/build.log flags=COPT=-Werror
    outputs+=("$log")
    cd "$scratch/tree" || return 1
    [ -z "$sanitize" ] || flags=PROFILE=$sanitizer_flags
    if ! as_user $((900 * patience)) make -s -j"$(nproc)" PG_CONFIG="$pgc" "$flags" all >"$log" 2>&1; then
        not_ok build "$log"; return 1
    fi
}

build_and_install() {
    local log=$scratch/build.log sudo=
    build_library || return
    [ -w "$("$pgc" --pkglibdir)" ] && [ -w "$("$pgc" --sharedir)/extension" ] || sudo=as_root
    if [ -n "$sanitize" ]; then
        preload_sanitizers || { not_ok "sanitizers are there" "$log"; return 1; }
        keep_installed
    fi
    if ! $sudo make -s PG_CONFIG="$pgc" install >>"$log" 2>&1; then
        not_ok install "$log"; return 1
    fi
    ok build
    if [ -z "$sanitize" ] && wanted symbols; then run_logged symbols 300 test/check-symbols learnedbtree.so; fi
    if [ -z "$sanitize" ] && { wanted layers || wanted calls; }; then run_logged calls 300 test/check-layers "$scratch/tree/src"; fi
}

# ---- sanitizers: in our library, not in the server, and by hand only ("test/run --sanitize") ----

sanitizer_flags="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow"
sanitizer_flags+=" -fno-sanitize-recover=undefined,float-cast-overflow"
sanitizer_report='ERROR: AddressSanitizer|AddressSanitizer:DEADLYSIGNAL|: runtime error: '

# Their runtime must precede libc in each process that loads our library, so all that comes after the build has it.
# A server does not free all that it allocates, leaves functions by longjmp() and measures its stack: no search for
# leaks, no stack elsewhere.  Clients take the server's own libpq: with GnuTLS, as distributions build it, a process
# with this runtime does not end.
preload_sanitizers() {
    local runtime
    runtime=$(ldd learnedbtree.so | awk '/lib(a|ub)san\.so/ && $3 ~ /^\// { printf "%s%s", sep, $3; sep = ":" }')
    [ -n "$runtime" ] || return 1
    user_env=("LD_PRELOAD=$runtime" "LD_LIBRARY_PATH=$("$pgc" --libdir)"
              "UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1"
              "ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:detect_stack_use_after_return=0")
}

report_sanitizers() { # LOG-OR-FOLDER NAME: what they have written to the logs of servers
    if grep -rhE -A 40 "$sanitizer_report" "$1" >"$scratch/sanitizers-$2.log" 2>/dev/null; then
        not_ok "sanitizers/$2" "$scratch/sanitizers-$2.log" 120
    else
        ok "sanitizers/$2"
    fi
}

# A server without the runtime cannot load a library with it: what was installed before comes back at the end.
keep_installed() {
    installed=$("$pgc" --pkglibdir)/learnedbtree.so
    [ ! -e "$installed" ] || cp -p "$installed" "$scratch/installed.so"
}

put_back_installed() {
    local owner=
    [ -n "$installed" ] || return 0
    [ -w "$(dirname "$installed")" ] || owner=as_root
    $owner rm -f "$installed"
    [ ! -e "$scratch/installed.so" ] || $owner cp -p "$scratch/installed.so" "$installed"
}

# ---- valgrind: the shared server runs under memcheck, by hand only ("test/run --valgrind FILE") ----

# The program that pg_ctl starts instead of postgres.  Each process has a log of its own.
valgrind_program() {
    as_user 60 mkdir "$scratch/valgrind"
    cat >"$scratch/postgres" <<END
#!/bin/sh
exec valgrind --quiet --tool=memcheck --leak-check=no --trace-children=yes --track-origins=yes --fullpath-after= \
    --num-callers=30 --suppressions='$suppressions' --suppressions='$scratch/tree/test/valgrind.supp' \
    --error-markers=BEGIN-REPORT,END-REPORT \
    --log-file='$scratch/valgrind/%p.log' '$bindir/postgres' "\$@"
END
    chmod 755 "$scratch/postgres"
}

# Reports with a function of ours in their stacks fail; the server's alone are counted.
report_valgrind() {
    local log=$scratch/valgrind.log rooms
    outputs+=("$scratch/valgrind")
    rooms=$(cd "$root/src" && printf '%s|' */ | tr -d /)
    cat "$scratch"/valgrind/*.log | awk -v ours="src/(${rooms%|})/[a-z_0-9]+[.][ch]:" '
        /BEGIN-REPORT/ { text = ""; mine = 0; next }
        /END-REPORT/ { if (mine) printf "%s", text; else others++; next }
        { sub(/^==[0-9]+== /, ""); text = text $0 "\n"; if ($0 ~ ours) mine = 1 }
        END { if (others) print others " reports without us" >"/dev/stderr" }' >"$log" 2>"$log.others"
    [ ! -s "$log.others" ] || note "$(cat "$log.others")"
    if [ -s "$log" ]; then not_ok valgrind "$log" 200; else ok valgrind; fi
}

# ---- the private server that regress and isolation tests share ----

settings() {
    cat <<END
listen_addresses = ''
unix_socket_directories = '$scratch/socket'
port = 5432
fsync = off
autovacuum = off
shared_buffers = 128MB
wal_level = logical
max_prepared_transactions = 10
statement_timeout = $((900 * patience))s
lc_messages = 'C'
timezone = 'UTC'
datestyle = 'ISO, YMD'
log_line_prefix = '%m [%p] %a '
learnedbtree.naptime = 1h   # results must not depend on when the worker comes
END
    if [ -n "$others_order" ]; then others_settings
    elif [ "$major" -lt 17 ]; then echo "shared_preload_libraries = 'learnedbtree'"
    fi
}

# Is it up?  Starts it at the first call.
need_server() {
    local data=$scratch/data log=$scratch/server.log program=()
    if [ -n "$server_pid" ]; then kill -0 "$server_pid" 2>/dev/null; return; fi
    outputs+=("$log")
    if ! as_user $((300 * patience)) "$bindir/initdb" -D "$data" -A trust -U postgres --no-sync \
         --locale=C.UTF-8 -E UTF8 >"$scratch/initdb.log" 2>&1; then
        not_ok server "$scratch/initdb.log"; return 1
    fi
    as_user 60 mkdir "$scratch/socket"
    settings >>"$data/postgresql.conf"
    if [ -n "$suppressions" ]; then
        valgrind_program
        program=(-p "$scratch/postgres")
    fi
    if ! as_user $((360 * patience)) "$bindir/pg_ctl" "${program[@]}" -D "$data" -l "$log" -w -t $((300 * patience)) start \
         >"$scratch/start.log" 2>&1; then
        not_ok server "$log"; return 1
    fi
    server_pid=$(head -n 1 "$data/postmaster.pid")
}

stop_server() {
    local i
    [ -n "$server_pid" ] || return 0
    kill -INT "$server_pid" 2>/dev/null
    for i in $(seq $((600 * patience))); do kill -0 "$server_pid" 2>/dev/null || break; sleep 0.1; done
    if kill -0 "$server_pid" 2>/dev/null; then
        kill -QUIT "$server_pid"; sleep 2
        not_ok "server stops" "$scratch/server.log"
    fi
    if grep -qE 'PANIC:|TRAP:|terminated by signal' "$scratch/server.log"; then
        grep -hE -A 3 'PANIC:|TRAP:|terminated by signal' "$scratch/server.log" >"$scratch/crash.log"
        not_ok "server does not crash" "$scratch/crash.log"
    fi
    [ -z "$sanitize" ] || report_sanitizers "$scratch/server.log" shared
    [ -z "$suppressions" ] || report_valgrind
    server_pid=
}

connection() { printf '%s\n' "--host=$scratch/socket" --port=5432 --user=postgres; }

# ---- regress, isolation: pg_regress says "test x ... ok" (15) or "ok 1 - x" (16 and later) ----

# Report the tests of LIST from pg_regress's output in LOG; diffs of failures are in FOLDER.
report_regress() { # KIND LOG FOLDER TEST...
    local kind=$1 log=$2 folder=$3 test line; shift 3
    for test in "$@"; do
        line=$(grep -E "^(test )?$test +\.\.\. ok |^ok [0-9]+ +[-+] $test " "$log")
        if [ -n "$line" ]; then
            [[ $line =~ ([0-9]+)\ ms ]] && line=" (${BASH_REMATCH[1]} ms)" || line=
            ok "$kind/$test$line"
        else
            show_diff "$folder" "$test" >"$scratch/one.diff"
            not_ok "$kind/$test" "$scratch/one.diff" 120
        fi
    done
}

show_diff() { # FOLDER TEST: the part of regression.diffs about this test, or of the log
    if [ -e "$1/regression.diffs" ]; then
        awk -v want="/$2.out" '/^diff / { show = index($0, want) > 0 } show' "$1/regression.diffs" | head -n 120
    fi
}

# The names of the tests asked for.  All run by served btree indexes but for those of test/by-am that say "only"; by
# the access method (am) run those of test/by-am.
pick() { # STEP KIND FOLDER SUFFIX AM
    local file name how
    for file in "$3"/*"$4"; do
        [ -e "$file" ] || continue
        name=$(basename "$file" "$4")
        [ "$name" != setup ] && wanted "$1" "$name" || continue
        [ "$1" != beside ] || [[ " ${beside_tests[$others_order]} " == *" $name "* ]] || continue
        how=$(awk -v name="$2/$name" '$1 == name { print $2 }' "$root/test/by-am")
        case $5:$how in
            btree:only | learnedbtree:) ;;
            *) echo "$name" ;;
        esac
    done
}

# pg_regress gives up at a test without expected output: let such a test fail with a diff instead.
expect_something() { # FOLDER TEST...
    local folder=$1 test; shift
    mkdir -p "$folder"
    for test in "$@"; do
        [ -e "$folder/$test.out" ] || : >"$folder/$test.out"
    done
}

run_regress() { # STEP NAME AM [EXTENSION...]: AM's tests, reported as NAME, with further extensions in their database
    local step=$1 name=$2 am=$3 folder=$scratch/$2 log=$scratch/$2.log began=$SECONDS tests; shift 3
    mapfile -t tests < <(pick "$step" regress "$scratch/tree/test/sql" .sql "$am")
    [ ${#tests[@]} -gt 0 ] || return 0
    need_server || return
    as_user 60 mkdir "$folder"
    ln -s "$scratch/tree/test/sql" "$folder/sql"
    ln -s "$scratch/tree/expected" "$folder/expected"
    expect_something "$folder/expected" setup "${tests[@]}"
    cd "$folder" || return
    mapfile -t where < <(connection)
    as_user $((1800 * patience)) env "LBT_AM=$am" "$tools/regress/pg_regress" --inputdir="$folder" \
        --outputdir="$folder" --bindir="$bindir" "${where[@]}" --dbname=regression --load-extension=amcheck \
        --load-extension=learnedbtree "${@/#/--load-extension=}" setup "${tests[@]}" >"$log" 2>&1
    outputs+=("$log" "$folder/regression.diffs" "$folder/results")
    grep -qE '^(test setup|ok 1 |not ok 1 )' "$log" || { not_ok "$name starts" "$log"; return; }
    report_regress "$name" "$log" "$folder" setup "${tests[@]}"
    note "$name took $((SECONDS - began)) s"
}

run_isolation() { # NAME AM
    local name=$1 am=$2 folder=$scratch/$1 log=$scratch/$1.log began=$SECONDS tests options
    mapfile -t tests < <(pick "$name" isolation "$scratch/tree/test/isolation/specs" .spec "$am")
    [ ${#tests[@]} -gt 0 ] || return 0
    need_server || return
    mapfile -t where < <(connection)
    options=(--dbname=isolation_am --load-extension=amcheck --load-extension=learnedbtree)
    if [ "$am" = btree ]; then
        serve_isolation || { not_ok "$name starts" "$log"; return; }
        options=(--dbname=isolation_regression --use-existing)
    fi
    as_user 60 cp -R "$scratch/tree/test/isolation" "$folder"
    expect_something "$folder/expected" "${tests[@]}"
    cd "$folder" || return
    as_user $((1800 * patience)) "$tools/isolation/pg_isolation_regress" --inputdir="$folder" --outputdir="$folder/out" \
        --bindir="$bindir" "${where[@]}" "${options[@]}" "${tests[@]}" >"$log" 2>&1
    outputs+=("$log" "$folder/out/regression.diffs" "$folder/out/results")
    report_regress "$name" "$log" "$folder/out" "${tests[@]}"
    note "$name took $((SECONDS - began)) s"
}

# The specs' database serves all of its btree indexes, but not the plain ones, by which the tests know what is right.  The
# rest is regress's: setup.sql.
serve_isolation() {
    local psql=("$bindir/psql" "${where[@]/--user=/--username=}" -Xqv ON_ERROR_STOP=1) item
    as_user 300 "${psql[@]}" -c "CREATE DATABASE isolation_regression TEMPLATE template0" postgres >"$log" 2>&1 || return
    for item in "session_preload_libraries = learnedbtree" "learnedbtree.btree_indexes = 'all, !*_bk'" \
                "learnedbtree.min_leaves = 0" "tests.train = on"; do
        as_user 300 "${psql[@]}" -c "LOAD 'learnedbtree'" -c "ALTER DATABASE isolation_regression SET $item" postgres >>"$log" 2>&1 || return
    done
    as_user 300 env LBT_AM=btree "${psql[@]}" -c "CREATE EXTENSION amcheck" -c "CREATE EXTENSION learnedbtree" \
        -f "$scratch/tree/test/sql/setup.sql" isolation_regression >>"$log" 2>&1
}

# ---- what meets hooks once more, with all other extensions that are installed: some with ours loaded first, some last ----

others_order=       # first, last: where our library stands among those of others
declare -A beside_tests=([first]="explain_option lookahead loose served skip" [last]="cursors explain partitions plans served writes")

# Of names "library" or "library:extension", those whose files are there.
others() { # library|extension NAME...
    local what=$1 item
    for item in pg_stat_statements:pg_stat_statements auto_explain: hypopg:hypopg pg_cron:pg_cron \
                pg_hint_plan:pg_hint_plan pg_partman_bgw:pg_partman pg_repack:pg_repack pglogical:pglogical \
                pg_squeeze:pg_squeeze; do
        [ -e "$("$pgc" --pkglibdir)/${item%:*}.so" ] || continue
        if [ "$what" = library ]; then echo "${item%:*}"; else echo "${item#*:}"; fi
    done | grep .
}

others_settings() {
    local list
    list=$(others library | paste -sd,)
    case $others_order in first) list=learnedbtree,$list ;; last) list=$list,learnedbtree ;; esac
    cat <<END
shared_preload_libraries = '$list'
max_worker_processes = 20
compute_query_id = on
pg_stat_statements.track = all
auto_explain.log_min_duration = 0   # each statement of a client is explained, and none is seen
auto_explain.log_level = debug5
cron.database_name = regression
cron.host = '$scratch/socket'
pg_partman_bgw.dbname = regression
pg_partman_bgw.role = postgres
END
}

run_beside() { # first|last
    local others_order=$1 server_pid= there
    local tree=$scratch/tree scratch=$scratch/beside-$1
    as_user 60 mkdir "$scratch"
    ln -s "$tree" "$scratch/tree"
    mapfile -t there < <(others extension)
    note "learnedbtree $1, with: $(others library | paste -sd' ')"
    run_regress beside "beside-$1" btree "${there[@]}"
    stop_server
}

# Regress, isolation and catcheck: one job, as they share a server.
run_shared() {
    wanted am && run_regress am am learnedbtree
    wanted regress && run_regress regress regress btree
    wanted catcheck && run_catcheck
    wanted isolation && run_isolation isolation btree
    wanted am-isolation && run_isolation am-isolation learnedbtree
    stop_server
}

run_catcheck() {
    local log=$scratch/catcheck.log
    [ -x "$bindir/pg_catcheck" ] || { note "pg_catcheck: none for this server"; return; }
    need_server || return
    outputs+=("$log")
    mapfile -t where < <(connection)
    if as_user 60 "$bindir/psql" "${where[@]/--user=/--username=}" -XAtc "SELECT 1" regression >/dev/null 2>&1
    then
        run_logged catcheck 600 "$bindir/pg_catcheck" "${where[@]/--user=/--username=}" regression
    fi
}

# ---- PostgreSQL's own suites, with every btree index served; ci/server keeps them with the servers it builds ----

suite_settings() {
    cat <<END
shared_preload_libraries = 'learnedbtree'
learnedbtree.btree_indexes = 'all'
learnedbtree.min_leaves = 0
fsync = off
END
}

# Is all that differs in a test known?  What is not goes to stdout.
unknown_differences() { # SUITE/TEST DIFFS RESULTS
    local test=${1#*/} expected pattern
    pattern=$(awk -v name="$1" '$1 == name { sub(/^[^ ]+ +/, ""); print }' "$root/test/suites.known")
    expected=$(awk -v end="/$test.out" '/^diff / && index($0, end) { print $(NF - 1); exit }' "$2")
    if [ -z "$expected" ]; then echo "no difference is shown: has it crashed?"; return; fi
    diff -wU0 "$expected" "$3/$test.out" | grep '^[-+]' | grep -vE '^(---|\+\+\+) /|^[-+][+ ]*-[-+ ]*$|^[-+] *QUERY PLAN' |
        if [ -n "$pattern" ]; then grep -vE -e "$pattern"; else cat; fi
}

# Report a suite that pg_regress has run, from its output in LOG and its files in FOLDER.
report_suite() { # SUITE LOG FOLDER [NAME]
    local kind=$1 log=$2 folder=$3 name=suites/${4:-$1} test bad=0 diff=$3.diff
    if ! grep -qE '^1\.\.[0-9]+|^=+$|All [0-9]+ tests' "$log"; then not_ok "$name" "$log"; return; fi
    : >"$diff"
    for test in $(sed -nE 's/^not ok [0-9]+ +[-+] ([a-z0-9_-]+) +[0-9]+ ms$/\1/p; s/^(test | +)([a-z0-9_-]+) +\.\.\. FAILED.*/\2/p' "$log"); do
        unknown_differences "$kind/$test" "$folder/regression.diffs" "$folder/results" >"$diff.one"
        if [ -s "$diff.one" ]; then
            bad=$((bad + 1))
            { echo "$kind/$test:"; cat "$diff.one"; } >>"$diff"
        fi
    done
    if grep -rqE 'PANIC:|TRAP:|terminated by signal' "$folder/log" 2>/dev/null; then
        bad=$((bad + 1))
        grep -rhE -A 3 'PANIC:|TRAP:|terminated by signal' "$folder/log" >>"$diff"
    fi
    if ! grep -rqs 'Custom Scan (Learned ' "$folder/results"; then
        bad=$((bad + 1))
        echo "no plan has a node of ours: was any index served?" >>"$diff"
    fi
    if [ "$bad" = 0 ]; then ok "$name"; else not_ok "$name" "$diff" 200; fi
}

run_suite() { # KIND PROGRAM ARGUMENTS...
    local kind=$1 folder=$scratch/suite-$1 program=$2; shift 2
    as_user 60 mkdir -p "$folder" "$scratch/sockets"
    suite_settings >"$folder/settings"
    cd "$suites/$kind" || return
    # Its socket is in the scratch folder too: not everyone may write to /tmp.
    as_user $((3600 * patience)) env TMPDIR="$scratch/sockets" "$program" --inputdir="$suites/$kind" --outputdir="$folder" \
        --temp-instance="$folder/instance" --temp-config="$folder/settings" --bindir="$bindir" \
        --load-extension=learnedbtree --encoding=UTF8 --no-locale "$@" >"$folder.log" 2>&1
    outputs+=("$folder.log" "$folder/regression.diffs" "$folder/log")
    report_suite "$kind" "$folder.log" "$folder"
    [ -z "$sanitize" ] || report_sanitizers "$folder/log" "suite-$kind"
}

# The regression suite on a server with a streaming standby, whose dump must equal its own.
run_standby_suite() {
    local work=$scratch/suite-standby log=$scratch/suite-standby.log
    as_user 60 mkdir -p "$work/tmp_check/log" "$scratch/sockets"
    suite_settings >"$work/settings"
    # It sets the libraries itself: ours are added behind its own, by every session.
    sed -i 's/^shared_preload/session_preload/' "$work/settings"
    cd "$suites/recovery" || return
    as_user $((3600 * patience)) env TESTDIR="$work" TESTDATADIR="$work/tmp_check" TESTLOGDIR="$work/tmp_check/log" \
        PG_REGRESS="$tools/regress/pg_regress" REGRESS_SHLIB="$suites/regress/regress.so" TMPDIR="$scratch/sockets" \
        EXTRA_REGRESS_OPTS="--load-extension=learnedbtree" TEMP_CONFIG="$work/settings" \
        prove --nocolor -v -I "$tools/perl" t/027_stream_regress.pl >"$log" 2>&1
    outputs+=("$log")
    # One check of its own fails by the known differences of the regression suite, and only that one may.
    if grep -E '^not ok' "$log" | grep -qv 'regression tests pass' || ! grep -q '^ok .*compare primary and standby' "$log"; then
        not_ok suites/standby "$log"
    else
        report_suite regress "$work/tmp_check/regression.out" "$work/tmp_check" standby
    fi
    stop_leftovers "$work"
}

run_suites() {
    suites=$bindir/../suites
    if [ ! -e "$suites/complete" ]; then
        [ -z "$only" ] || note "suites: this server has none; ci/server MAJOR assert builds one that has"
        return
    fi
    suites=$(cd "$suites" && pwd)
    wanted suites isolation && start_job suite-isolation run_suite isolation "$tools/isolation/pg_isolation_regress" \
        --schedule="$suites/isolation/isolation_schedule"
    wanted suites standby && start_job suite-standby run_standby_suite
    wanted suites regress && start_job suite-regress run_suite regress "$tools/regress/pg_regress" --dlpath="$suites/regress" \
        --schedule="$suites/regress/parallel_schedule" --max-concurrent-tests=20
}

# ---- TAP: each script starts servers of its own ----

# Run one script for at most SECONDS, in the folder WORK, with variables set; prove's output goes to stdout.  Sockets are in
# the scratch folder, whose name is short: a script that fails leaves them.
prove_script() { # NAME WORK SECONDS [VARIABLE=VALUE...]
    local name=$1 work=$2 limit=$3; shift 3
    cd "$scratch/tree/test" || return
    as_user 60 mkdir -p "$work/tmp_check/log" "$scratch/sockets"
    # 15 and 16 look at TESTDIR, later ones at the other two
    as_user "$limit" env TESTDIR="$work" TESTDATADIR="$work/tmp_check" TESTLOGDIR="$work/tmp_check/log" \
        PG_REGRESS="$tools/regress/pg_regress" PG_TEST_TIMEOUT_DEFAULT=$((300 * patience)) TMPDIR="$scratch/sockets" \
        enable_injection_points="$(injection_points)" LBT_CLIENTS_PYTHON="$clients_python" "${template[@]}" "$@" \
        prove --nocolor -v -I "$tools/perl" -I "$scratch/tree/test/t" "t/$name.pl"
}

# Scripts copy their first data folder, rather than that each runs initdb: by the server's own tools from 17 on.
make_template() {
    local folder=$scratch/template log=$scratch/template.log
    # In the locale that they see.
    if as_user $((300 * patience)) env -u LC_ALL LC_MESSAGES=C "$bindir/initdb" -D "$folder" -A trust --no-sync >"$log" 2>&1; then
        template=("INITDB_TEMPLATE=$folder")
        [ "$major" -ge 17 ] || template+=("LBT_COPY_TEMPLATE=yes")
    fi
}

# As many at a time as jobs may be.  Servers, sockets, ports and folders are each script's own.
run_tap() {
    local script name begun=
    as_user 60 mkdir -p "$scratch/ports"
    make_template
    # The longest first: what is begun last decides when all are done.
    for script in "$scratch"/tree/test/t/{011,003,018,037,012,017,019,005,034}_*.pl "$scratch"/tree/test/t/*.pl; do
        [ -e "$script" ] || continue
        name=$(basename "$script" .pl)
        case $begun in *" $name "*) continue ;; esac
        begun+=" $name "
        wanted tap "$name" && start_job "tap-$name" tap_script "$name"
    done
}

tap_script() { # NAME
    local name=$1 log=$scratch/tap-$1.log work=$scratch/tap-$1 began=$SECONDS
    if prove_script "$name" "$work" $((1800 * patience)) PG_TEST_PORT_DIR="$scratch/ports" >"$log" 2>&1; then
        ok "tap/$name ($((SECONDS - began)) s)"
    else
        why_failed "$log" "$work/tmp_check/log" "$name" >"$log.why" 2>/dev/null
        not_ok "tap/$name" "$log.why"
        outputs+=("$log" "$work/tmp_check/log")
    fi
    [ -z "$sanitize" ] || report_sanitizers "$work/tmp_check/log" "$name"
    stop_leftovers "$work"
}

# What a failed script says, the reasons first: who reads this may have seen enough after a few lines.
why_failed() { # LOG FOLDER NAME
    grep -E -A 4 '^not ok ' "$1" | head -n 30
    grep -hE 'PANIC: |TRAP: |terminated by signal' "$2"/*.log | tail -n 5
    tail -n 12 "$1"
    tail -n 20 "$2/regress_log_$3" | cut -c1-240
}

# A script that was cut short may have left servers; they are ours by their data folder.
stop_leftovers() { # FOLDER
    local file pid i
    while IFS= read -r file; do
        pid=$(head -n 1 "$file" 2>/dev/null)
        kill -QUIT "${pid:-none}" 2>/dev/null || continue
        note "stopped a server left over in $1"
        for i in {1..300}; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    done < <(find "$1" -name postmaster.pid 2>/dev/null)
}

injection_points() {
    if "$pgc" --configure | grep -q -- --enable-injection-points; then echo yes; else echo no; fi
}

# ---- smoke runs of bench/: each on a server that it makes itself ----

# By whoever runs us, as bench/ is meant to be run: root's servers are another user's all the same.
run_bench() {
    local name needs options
    if [ -n "$sanitize$suppressions" ]; then note "bench: left out where the library is instrumented"; return; fi
    if [ -z "$bench_python" ]; then note "bench: skipped, as its Python packages could not be had"; return; fi
    while read -r name needs options; do
        case $name in '' | '#'*) continue ;; esac
        wanted bench "$name" && start_job "bench-$name" bench_case "$name" "$needs" $options
    done <"$root/test/bench/cases"
}

bench_case() { # COMMAND[-VARIANT] NEEDS STOP [OPTION...]
    local name=$1 needs=$2 log=$scratch/bench-$1.log began=$SECONDS need; shift 2
    for need in ${needs//,/ }; do
        case $need in
            -) ;;
            */*) step 600 "$root/bench/$need" >"$log" 2>&1 || { note "bench/$name: skipped, as $need fails"; return; } ;;
            *) command -v "$need" >/dev/null || { note "bench/$name: skipped, as there is no $need"; return; } ;;
        esac
    done
    mkdir "$scratch/bench-$name"
    if step 1200 env "LBT_BENCH_PYTHON=$bench_python" "MPLCONFIGDIR=$scratch/matplotlib" \
        "$root/test/bench/smoke" "$scratch/bench-$name" "$pgc" "${name%%-*}" "$@" >"$log" 2>&1
    then
        ok "bench/$name ($((SECONDS - began)) s)"
    else
        { tail -n 4 "$log"; tail -n 40 "$log"; } >"$log.why"    # the reason first, as above
        not_ok "bench/$name" "$log.why"
        outputs+=("$log")
    fi
}

# ---- the end ----

# After a failure, what there is to read goes to tmp_check/MAJOR.
keep_logs() {
    local to=$root/tmp_check/$major item
    [ "$failed" -gt 0 ] || return 0
    rm -rf "$to"
    mkdir -p "$to" 2>/dev/null || return 0
    for item in "${outputs[@]}"; do
        [ ! -e "$item" ] || cp -R --parents "$item" "$to/" 2>/dev/null
    done
    mv "$to$scratch"/* "$to/" 2>/dev/null
    rm -rf "${to:?}/tmp"
    note "logs: $to"
}

finish_up() {
    if [ -n "$step_pid" ]; then kill "$step_pid" 2>/dev/null; wait "$step_pid" 2>/dev/null; fi
    if [ ${#running[@]} -gt 0 ]; then
        kill "${job_pid[@]}" 2>/dev/null; wait "${job_pid[@]}" 2>/dev/null
        sleep 1     # a server that has just been started writes its pid down
    fi
    stop_leftovers "$scratch"
    put_back_installed
    rm -rf "$scratch"
}
