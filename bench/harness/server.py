"""A scratch PostgreSQL server: made from a given installation, thrown away at exit, or kept for the next run.

The postmaster is our direct child and is stopped by its pid, with bounded
waits, whichever way the run ends; if this process is killed outright, the
kernel stops it (parent-death signal).  Only a Unix socket listens.  Servers
refuse to run as root, so as root it runs as the user `postgres`.
"""

import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time

import psycopg

from .slow_reads import SlowReads

SERVER_USER = "postgres"
START_SECONDS = 120
STOP_SECONDS = 30
SHUTDOWN_SECONDS = 300  # with the checkpoint that a restart needs
SOCKET_PATH_MAX = 90  # bytes; the kernel allows 107 with the socket's own name
OWN_CONF = "bench.conf"  # in the data directory, beside postgresql.conf: the settings of the run

# A run measures one thing: nothing happens in the background, nothing waits for a disk.
QUIET = {
    "listen_addresses": "",
    "huge_pages": "try",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "autovacuum": "off",
    "jit": "off",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "64GB",
    "checkpoint_timeout": "1d",
    "bgwriter_lru_maxpages": "0",
    "synchronize_seqscans": "off",
    "max_connections": "20",
    "logging_collector": "off",
    "log_checkpoints": "off",
}


class Installation:
    """What a pg_config says about the server that it belongs to."""

    def __init__(self, pg_config):
        self.pg_config = shutil.which(pg_config)
        if self.pg_config is None:
            raise SystemExit(f"bench: {pg_config} is not a program: give a pg_config with --pg-config")
        self.bindir = pathlib.Path(self._ask("--bindir"))
        self.sharedir = pathlib.Path(self._ask("--sharedir"))
        version = self._ask("--version")
        self.major = int(re.search(r"(\d+)", version).group(1))

    def _ask(self, what):
        return subprocess.run([self.pg_config, what], check=True, capture_output=True, text=True).stdout.strip()

    def program(self, name):
        return str(self.bindir / name)

    def has_extension(self, name):
        return (self.sharedir / "extension" / f"{name}.control").exists()

    def loading(self, library):
        """Settings by which every session loads a library that needs shared memory; before 17, the postmaster has to."""
        return {"shared_preload_libraries" if self.major < 17 else "session_preload_libraries": library}


def session_options(settings):
    """libpq's options by which a session begins with settings."""
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _die_with_parent():
    """In the child, after its user was set: have the kernel stop it when we are gone."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGQUIT)


@contextlib.contextmanager
def _undisturbed():
    """Signals that stop a run take effect afterwards: nothing may be left half made or half removed."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _ensure_server_user():
    try:
        pwd.getpwnam(SERVER_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", SERVER_USER], check=True)


class ScratchServer:
    """Context manager: initdb, start, and on exit stop and remove.

    With a folder to keep, the cluster in it is used if there is one, and stays.  With a latency, reads of files that
    have been made cold take as many microseconds.
    """

    def __init__(self, installation, settings, scratch, say, keep=None, latency=None):
        self.installation = installation
        self.settings = {**QUIET, **settings}
        self.scratch = scratch
        self.keep = keep and pathlib.Path(keep).resolve()
        self.say = say
        self.latency = latency
        self.slow_reads = None
        self.process = None
        self.folder = None
        self.sockets = None

    def __enter__(self):
        self.as_user = {}
        if os.geteuid() == 0:
            _ensure_server_user()
            groups = os.getgrouplist(SERVER_USER, pwd.getpwnam(SERVER_USER).pw_gid)
            self.as_user = dict(user=SERVER_USER, group=groups[0], extra_groups=groups)
        try:
            self._make_folders()
            if self.latency:
                self.slow_reads = SlowReads(self.latency, self.folder)
            if not self._kept_cluster():
                self._initdb()
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *exception):
        with _undisturbed():
            self._stop()
            for folder in {self.folder, self.sockets} - {None, self.keep}:
                shutil.rmtree(folder, ignore_errors=True)

    def connect(self, settings=None, database="postgres"):
        """A session, which begins with these settings."""
        # No automatic preparing: it would refuse our several statements in one message.
        return psycopg.connect(host=str(self.sockets), user=SERVER_USER, dbname=database,
                               autocommit=True, prepare_threshold=None, options=session_options(settings or {}))

    def client_environment(self, options):
        """Environment for a client program; `options` are settings of its sessions."""
        return {**os.environ, "PGHOST": str(self.sockets), "PGUSER": SERVER_USER, "PGDATABASE": "postgres",
                "PGOPTIONS": session_options(options)}

    @contextlib.contextmanager
    def one_core(self):
        """Sessions and children that begin in here stay on one core.

        A client and its backend take turns, so one core is enough; left to the scheduler, the wake-up of an
        idle core is the larger part of a round trip and differs from run to run by a factor of three.
        """
        targets = {0: os.sched_getaffinity(0), self.process.pid: os.sched_getaffinity(self.process.pid)}
        try:
            for process in targets:
                os.sched_setaffinity(process, {max(targets[0])})
            yield
        finally:
            for process, cores in targets.items():
                os.sched_setaffinity(process, cores)

    def reads_at_once(self):
        """Context manager: reads in here do not take the latency, if there is one, nor do later ones of the same blocks."""
        return self.slow_reads.paused() if self.slow_reads else contextlib.nullcontext()

    def _own_folder(self, parent):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="learnedbtree-bench-", dir=parent))
        if self.as_user:
            shutil.chown(folder, SERVER_USER, self.as_user["group"])
        return folder

    def _make_folders(self):
        if self.scratch:
            os.makedirs(self.scratch, exist_ok=True)
        with _undisturbed():
            if self.keep:
                self.keep.mkdir(parents=True, exist_ok=True)
                if self.as_user:
                    shutil.chown(self.keep, SERVER_USER, self.as_user["group"])
                self.folder = self.keep
            else:
                self.folder = self._own_folder(os.path.abspath(self.scratch) if self.scratch else None)
            too_long = len(os.fsencode(str(self.folder))) > SOCKET_PATH_MAX
            self.sockets = self._own_folder("/tmp") if too_long else self.folder
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"

    def _kept_cluster(self):
        """Whether there is one that a run has left; raises SystemExit if something else is in its place."""
        if not self.keep or not self.data.exists():
            return False
        if not (self.data / OWN_CONF).exists():
            raise SystemExit(f"bench: {self.data} is no cluster that bench/ has made: remove it, or name another folder")
        major = int((self.data / "PG_VERSION").read_text(encoding="utf-8"))
        if major != self.installation.major:
            raise SystemExit(f"bench: {self.data} is of version {major}, the server of {self.installation.major}")
        self.log.unlink(missing_ok=True)
        return True

    def _initdb(self):
        self.say("making a scratch cluster")
        with open(self.log, "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [self.installation.program("initdb"), "-D", self.data, "-U", SERVER_USER, "-A", "trust", "-E", "UTF8",
                 "--locale=C", "--no-sync", "--no-instructions"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                **self.as_user)
        try:
            status = process.wait(START_SECONDS)
        except BaseException:
            # It takes a second or two: let it end, rather than leave the server that it runs behind.
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            raise
        if status != 0:
            raise SystemExit(f"bench: initdb failed:\n{self.log_tail()}")
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(f"include '{OWN_CONF}'\n")

    def _start(self):
        with open(self.data / OWN_CONF, "w", encoding="utf-8") as conf:
            conf.write(f"unix_socket_directories = '{self.sockets}'\n")
            for name, value in self.settings.items():
                conf.write(f"{name} = '{value}'\n")
        slow = self.slow_reads
        with open(self.log, "a", encoding="utf-8") as log:
            # A session of its own: Ctrl-C reaches us alone, and we stop the server.
            self.process = subprocess.Popen(
                [self.installation.program("postgres"), "-D", self.data], cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=_die_with_parent, pass_fds=[slow.descriptor] if slow else (),
                env={**os.environ, **(slow.environment() if slow else {})}, **self.as_user)
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"bench: the server did not start:\n{self.log_tail()}")
            try:
                self.connect().close()
                break
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise SystemExit(f"bench: no answer in {START_SECONDS} s:\n{self.log_tail()}") from None
                time.sleep(0.1)
        self.say(f"server {self.process.pid} is up, shared_buffers {self.settings.get('shared_buffers', 'default')}")

    def restart(self, settings, stopped=lambda: None):
        """Shut down, call `stopped`, start with further settings.  The caller connects anew."""
        self.process.send_signal(signal.SIGINT)  # a fast shutdown
        try:
            status = self.process.wait(SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"bench: no shutdown in {SHUTDOWN_SECONDS} s:\n{self.log_tail()}") from None
        if status != 0:
            raise SystemExit(f"bench: the server ended with status {status}:\n{self.log_tail()}")
        stopped()
        self.settings.update(settings)
        self._start()

    def _stop(self):
        """Stop at once where the data are thrown away; what is kept gets a shutdown checkpoint first."""
        if self.process is None or self.process.poll() is not None:
            return
        ways = [(signal.SIGQUIT, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)]
        for how, seconds in [(signal.SIGINT, SHUTDOWN_SECONDS)] * bool(self.keep) + ways:
            self.process.send_signal(how)
            try:
                self.process.wait(seconds)
                return
            except subprocess.TimeoutExpired:
                continue

    def log_tail(self, lines=20):
        try:
            return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        except OSError:
            return "(no server log)"
