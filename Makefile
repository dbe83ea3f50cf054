# learnedbtree: build and install with "make && make install"; see README.md.

EXTENSION = learnedbtree
MODULE_big = learnedbtree
DATA = $(wildcard sql/learnedbtree--*.sql)
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*/*.c)))
PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-declaration-after-statement
SHLIB_LINK =

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Headers are few and everything depends on them.
$(OBJS): $(wildcard src/*/*.h)

# Modules for LLVM's inlining are of no use here: our functions are called through pointers.
with_llvm = no

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
