# learnedbtree: build and install with "make && make install"; see README.md.

EXTENSION = learnedbtree
MODULE_big = learnedbtree
DATA = $(wildcard sql/learnedbtree--*.sql)
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*/*.c)))
PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-declaration-after-statement
SHLIB_LINK =

# "make installcheck REGRESS=ranges": the running server's way, by served btree indexes, or, with LBT_AM=learnedbtree in
# the environment, by those; CONTRIBUTING.md says what the server needs.  What other tests use is made first.  "make test"
# runs them on a server of its own.
REGRESS = $(filter-out setup,$(sort $(basename $(notdir $(wildcard test/sql/*.sql)))))
REGRESS_OPTS = --inputdir=test --load-extension=amcheck --load-extension=learnedbtree setup

# Bitcode for LLVM's inlining is of no use here: our functions are called through pointers.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

# Build, and run regress by served btree indexes on one private server, in under two minutes.  PGXS has a "check" of its
# own, which only says that there is none.
ifeq ($(MAKECMDGOALS),check)
check:
	@test/run $(named_server) --skip-model --only regress $(TESTFLAGS)
else ifneq ($(PGXS),)
include $(PGXS)

# Headers are few and everything depends on them.
$(OBJS): $(wildcard src/*/*.h)
else
# "make test" and "make demo" provide a server themselves; building needs one.
all install clean:
	@echo "no PostgreSQL server with its development files: $(PG_CONFIG) is missing or incomplete" >&2
	@echo "install postgresql-server-dev-NN, or name another with PG_CONFIG=..." >&2
	@exit 1
endif

# A server named by the user, for the scripts; they provide one where none is named.
named_server = $(if $(findstring file,$(origin PG_CONFIG)),,--pg-config "$(PG_CONFIG)")

# ---- targets for developers and users; none of them needs root where everything is installed ----

.PHONY: check check-layers check-later check-fast test indent demo site dist bench-deps

# Rooms include themselves and lower ones only, and no files each other in a circle.
check-layers:
	@test/check-layers

# The sources use nothing that a minor release added to a major version that was out.
check-later:
	@test/check-later

# The quick loop: what needs no server, in under half a minute.
check-fast:
	@test/check-fast

# PostgreSQL's layout for src/*/*.[ch].  INDENTFLAGS=--check shows what would change instead.
indent:
	@ci/indent $(INDENTFLAGS)

# Build, install and run all tests; ends with "N passed, N failed".  TESTFLAGS goes to test/run.
test:
	@test/run $(named_server) $(TESTFLAGS)

# The same index, served and not, on a private server, in under three minutes.  DEMOFLAGS=--keep leaves the extension.
demo:
	@bench/demo $(named_server) $(DEMOFLAGS)

# The documentation as a site, in site/, with all links checked.
site:
	@doc/build

# The archive for PGXN, with the addresses in its META.json: make dist REPOSITORY=https://... [BUGTRACKER=https://...]
dist:
	@ci/dist "$(REPOSITORY)" $(if $(BUGTRACKER),"$(BUGTRACKER)")

# The harness's Python packages, in a virtual environment of their own.
bench-deps: bench/.venv/.complete
bench/.venv/.complete: bench/requirements.txt
	python3 -c 'import ensurepip, venv' 2>/dev/null || bash -c '. ci/common.sh && need_packages python3 python3-venv'
	rm -rf bench/.venv
	python3 -m venv bench/.venv
	bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	touch $@
