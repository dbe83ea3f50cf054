# The official PostgreSQL image with learnedbtree.  Build it in the checkout:
#
#   docker build -t postgres-learnedbtree .                          # PostgreSQL 18
#   docker build -t postgres-learnedbtree --build-arg PG_MAJOR=15 .  # 15, 16 or 17
#
# Run it as the official image, and make the extension in each database that is to have it:
#
#   docker run -d --name learned --shm-size=2g -e POSTGRES_PASSWORD=... postgres-learnedbtree
#   docker exec learned psql -U postgres -c 'CREATE EXTENSION learnedbtree'
#   docker exec learned psql -U postgres -c "ALTER DATABASE postgres SET learnedbtree.btree_indexes = 'all'"
#
# New clusters load the library in all sessions: by session_preload_libraries, on 15 and 16 by shared_preload_libraries.
# A cluster that is on a volume already has its own configuration: add "-c session_preload_libraries=learnedbtree" (15 and
# 16: "-c shared_preload_libraries=learnedbtree") to docker run.

ARG PG_MAJOR=18

FROM postgres:${PG_MAJOR} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev libicu-dev make "postgresql-server-dev-$PG_MAJOR"
COPY . /src
RUN pgc="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" \
 && make -C /src -j"$(nproc)" PG_CONFIG="$pgc" \
 && make -C /src install PG_CONFIG="$pgc" DESTDIR=/installed

FROM postgres:${PG_MAJOR}
COPY --from=build /installed /
# What initdb makes a new cluster's configuration from.
RUN if [ "$PG_MAJOR" -lt 17 ]; then preload=shared; else preload=session; fi \
 && echo "${preload}_preload_libraries = 'learnedbtree'" >> /usr/share/postgresql/postgresql.conf.sample
