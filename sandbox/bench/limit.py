"""The limit of running calls by forking warm interpreters: how many calls per second they run without
transport, isolation or limits. `make bench-sandbox` compares the sandbox with it.

Each of a few zygotes loads the modules in the settings, warms up, freezes its objects, and then, for a given time,
forks a child for each call. The child runs the program with its output on a pipe; the zygote reads the pipe to its end,
waits for the child and checks the output.

    python -S -s -B limit.py SETTINGS

SETTINGS is a JSON object: "zygotes" (a count), "path" (folders of modules beyond the standard library), "warm_up" and
"program" (sources), "output" (what the program must print). Each line of standard input is a number of seconds; each
answer is a line, {"calls": n, "calls_per_s": x}. The environment, which sets the allocator, is the caller's.
"""

import gc
import json
import os
import struct
import sys
import time

ORDER = struct.Struct("=d")  # seconds; 0 only waits until the zygote is warm
ANSWER = struct.Struct("=Qd")  # number of calls, seconds that they took


def child(source, pipe):
    """Run the program and exit."""
    code = 1
    try:
        os.dup2(pipe, 1)
        exec(compile(source, "main.py", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        code = 0
    finally:
        os._exit(code)


def call(source, output):
    """Run the program in a child and check its output."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(source, writes)
    os.close(writes)
    printed = b""
    while True:
        more = os.read(reads, 65536)
        if not more:
            break
        printed += more
    os.close(reads)
    _, status = os.waitpid(pid, 0)
    if status or printed != output:
        sys.exit("call ended with wait status %#x and printed %r" % (status, printed))


def zygote(settings, orders, answers):
    """Warm up, then serve orders until there are no more."""
    os.setsid()  # like the sandbox: if the kernel groups processes for scheduling, each session gets a share
    sys.path[1:] = [p for p in sys.path[1:] if p] + settings["path"]
    exec(compile(settings["warm_up"], "<warm-up>", "exec"), {"__name__": "<warm-up>"})
    source, output = settings["program"], settings["output"].encode()
    gc.collect()
    gc.disable()
    gc.freeze()
    while True:
        order = os.read(orders, ORDER.size)
        if not order:
            return
        (seconds,) = ORDER.unpack(order)
        calls = 0
        began = now = time.monotonic()
        while now < began + seconds:
            call(source, output)
            calls += 1
            now = time.monotonic()
        os.write(answers, ANSWER.pack(calls, now - began))


def start(settings):
    """Fork a zygote before anything is loaded, so that the zygotes share no pages; return its two pipes."""
    orders, told = os.pipe()
    heard, answers = os.pipe()
    if os.fork() == 0:
        os.close(told)
        os.close(heard)
        try:
            zygote(settings, orders, answers)
            os._exit(0)
        except SystemExit as error:
            print("limit.py:", error, file=sys.stderr)
        except BaseException as error:
            print("limit.py: %s: %s" % (type(error).__name__, error), file=sys.stderr)
        os._exit(1)
    os.close(orders)
    os.close(answers)
    return told, heard


def measure(zygotes, seconds):
    """Let all zygotes run calls at once; return the number of calls and the sum of the rates."""
    try:
        for told, _ in zygotes:
            os.write(told, ORDER.pack(seconds))
    except BrokenPipeError:
        sys.exit("limit.py: a zygote has ended")
    calls, rate = 0, 0.0
    for _, heard in zygotes:
        answer = os.read(heard, ANSWER.size)
        if len(answer) != ANSWER.size:
            sys.exit("limit.py: a zygote has ended")
        done, took = ANSWER.unpack(answer)
        calls += done
        rate += done / took if done else 0
    return {"calls": calls, "calls_per_s": rate}


def main():
    settings = json.loads(sys.argv[1])
    zygotes = []
    for _ in range(settings["zygotes"]):
        zygotes.append(start(settings))
    measure(zygotes, 0)  # returns once all are warm
    for line in sys.stdin:
        print(json.dumps(measure(zygotes, float(line))), flush=True)


main()
