# learnedbtree: build and install with "make && make install"; see README.md.

EXTENSION = learnedbtree
MODULE_big = learnedbtree
DATA = $(wildcard sql/learnedbtree--*.sql)
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*/*.c)))
PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-declaration-after-statement
SHLIB_LINK =

# Bitcode for LLVM's inlining is of no use here: our functions are called through pointers.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Headers are few and everything depends on them.
$(OBJS): $(wildcard src/*/*.h)



# ---- targets for developers and users; none of them needs root where everything is installed ----

.PHONY: check-layers test demo bench-deps

# Layers include only what DESIGN allows: lower ones never include higher ones.
check-layers:
	@test/check-layers

# Build, install and run all tests against PG_CONFIG's server; ends with "N passed, N failed".
test:
	@test/run --pg-config "$(PG_CONFIG)"

demo:
	@bench/demo

# The harness's Python packages, in a virtual environment of their own.
bench-deps: bench/.venv/.complete
bench/.venv/.complete: bench/requirements.txt
	python3 -c 'import ensurepip, venv' 2>/dev/null || bash -c '. ci/common.sh && need_packages python3 python3-venv'
	rm -rf bench/.venv
	python3 -m venv bench/.venv
	bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	touch $@
