"""What the disk can do: random reads of 8 kB a second, one at a time and many at once, past all caches."""

import mmap
import os
import random
import threading
import time

PAGE = 8192
DEPTH = 32
SECONDS = 1.0
SEED = 5


def read_rates(files):
    """(one at a time, DEPTH at once) in reads/s of random pages of the files; None where O_DIRECT does not work.

    Each process of Python reads one page at a time in each of its threads; several processes share the threads,
    because Python itself takes longer than some disks.
    """
    descriptors = []
    try:
        try:
            for name in files:
                descriptors.append((os.open(name, os.O_RDONLY | os.O_DIRECT), os.path.getsize(name) // PAGE))
            descriptors = [(descriptor, pages) for descriptor, pages in descriptors if pages]
            if not descriptors or not _read_one(*descriptors[0]):
                return None
        except (AttributeError, OSError):
            return None
        processes = max(os.cpu_count() or 1, 1)
        return _rate(descriptors, 1, 1), _rate(descriptors, processes, DEPTH // processes)
    finally:
        for descriptor, _ in descriptors:
            os.close(descriptor)


def in_words(rates, size):
    if rates is None:
        return "no direct reads here: its speed was not measured"
    return (f"{rates[0]:,.0f} reads/s one at a time, {rates[1]:,.0f} at depth {DEPTH} "
            f"({rates[1] / rates[0]:.1f}×), of {PAGE // 1024} kB at random in {size / 1e6:,.0f} MB")


def _read_one(descriptor, _pages):
    with mmap.mmap(-1, PAGE) as buffer:
        return os.preadv(descriptor, [buffer], 0) == PAGE


def _rate(descriptors, processes, threads):
    """Reads a second of so many processes with so many threads each."""
    pipes = []
    for number in range(processes):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(writing, str(_threads_rate(descriptors, threads, number)).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        pipes.append((reading, child))
    total = 0.0
    for reading, child in pipes:
        with os.fdopen(reading) as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        total += float(answer or 0)
    return total


def _threads_rate(descriptors, threads, process):
    counts = [0] * threads
    ended = threading.Event()

    def work(number):
        draw = random.Random(SEED + 1000 * process + number)
        weights = [pages for _, pages in descriptors]
        with mmap.mmap(-1, PAGE) as buffer:
            while not ended.is_set():
                descriptor, pages = draw.choices(descriptors, weights)[0]
                os.preadv(descriptor, [buffer], draw.randrange(pages) * PAGE)
                counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    began = time.monotonic()
    for worker in workers:
        worker.start()
    time.sleep(SECONDS)
    done, seconds = sum(counts), time.monotonic() - began
    ended.set()
    for worker in workers:
        worker.join()
    return done / seconds
