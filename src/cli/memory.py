# SPDX-License-Identifier: MIT
# What runs in the target for `probing PID memory`: Python code that works in CPython 3.6 and later alike.
#
# look(_) prints what Python and torch know of their memory, "NAME NUMBER" a line. Nothing is imported or switched on: what the
# program has not loaded has nothing to tell.
def look(_):
    import sys

    def put(name, value):
        print("%s %d" % (name, value))

    put("python_blocks", sys.getallocatedblocks())
    gc = sys.modules.get("gc") or __import__("gc")
    for i, n in enumerate(gc.get_count()):
        put("gc_count_%d" % i, n)
    for i, stats in enumerate(gc.get_stats()):
        put("gc_collections_%d" % i, stats.get("collections", 0))
    put("gc_collected", sum(stats.get("collected", 0) for stats in gc.get_stats()))
    put("gc_uncollectable", sum(stats.get("uncollectable", 0) for stats in gc.get_stats()))
    tracemalloc = sys.modules.get("tracemalloc")
    if tracemalloc is not None and tracemalloc.is_tracing():
        current, peak = tracemalloc.get_traced_memory()
        put("tracemalloc_bytes", current)
        put("tracemalloc_peak_bytes", peak)
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None:
        return
    put("torch", 1)
    # a context is not made by looking
    if cuda.is_available() and cuda.is_initialized():
        for device in range(cuda.device_count()):
            for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
                put("cuda_%d_%s_bytes" % (device, name), getattr(cuda, name)(device))
