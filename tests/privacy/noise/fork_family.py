"""Run as a script: fork while holding a `NoiseSource`, and print what each member of the family drew, as JSON.

A process of its own, because Python warns of a fork where a library has started threads.
"""

import json
import multiprocessing
import os
import sys
import threading

from tacit.privacy.noise import NoiseSource, samplers


def draw(source):
    """Ten words and ten normals: a member of the family."""
    return source.words(10).tolist() + samplers.normals(source, 10).tolist()


def forked(member):
    """What `member()` returns in a forked child."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(start, json.dumps(member()).encode())
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def by_os_fork(source):
    """Two children, each with a child of its own, which are forked before and after their parents drew."""

    def first():
        return [*forked(lambda: [draw(source)]), draw(source)]

    def second():
        own = draw(source)
        return [own, *forked(lambda: [draw(source)])]

    return forked(first) + forked(second)


def by_os_fork_in_a_thread(source):
    """The child's only thread is not the one that owned the source in the parent."""
    drawn = []
    thread = threading.Thread(target=lambda: drawn.extend(by_os_fork(source)))
    thread.start()
    thread.join()
    return drawn


def _put(queue, source):
    queue.put(draw(source))


def by_multiprocessing(source):
    """Processes, and a pool that inherits the source as a global."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    processes = [context.Process(target=_put, args=(queue, source)) for _ in range(2)]
    for process in processes:
        process.start()
    drawn = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    global inherited
    inherited = source
    with context.Pool(2) as pool:
        drawn += pool.map(_draw_inherited, range(4), chunksize=1)
    return drawn


def _draw_inherited(_):
    return draw(inherited)


def family(how, seed, before):
    """What the parent drew after the forks, and what the children drew."""
    source = NoiseSource(seed)
    source.words(before)
    children = how(source)
    return {"how": how.__name__, "seed": seed, "before": before, "parent": draw(source), "children": children}


if __name__ == "__main__":
    ways = [by_os_fork, by_os_fork_in_a_thread, by_multiprocessing]
    json.dump([family(how, seed, before) for how in ways for seed in (None, 5) for before in (0, 100)], sys.stdout)
