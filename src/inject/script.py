# SPDX-License-Identifier: MIT
# What the interpreter runs to load the agent, between two instructions of one of its threads (PEP 768): CPython 3.14 and later.
#
# Before it come SCRIPT, the path of this file; PATH, that of the agent's library; OPTIONS; ENTRY, where it begins if it is loaded
# already, else 0; LIBRARY, its bytes where PATH does not lead to it here, else None. It removes its file, or writes the reason of a failure into it.
#
# A signal handler of the program may run in the middle of this, if this is the main thread, and raise what the program waits for. That
# is raised again once this has ended.
try:
    import posix
    try:
        import _ctypes
        posix.stat(SCRIPT)  # else nobody waits for this any more, and it may be loaded otherwise
        if LIBRARY is not None:
            file = posix.memfd_create("libprobing-agent.so")
            while LIBRARY:
                LIBRARY = LIBRARY[posix.write(file, LIBRARY):]
            PATH = b"/proc/self/task/../fd/%d" % file
        if not ENTRY:
            ENTRY = _ctypes.dlsym(_ctypes.dlopen(PATH, 2), "probing_agent_start")
        if LIBRARY is not None:
            posix.close(file)
        _ctypes.call_function(ENTRY, (OPTIONS,))
        posix.unlink(SCRIPT)
    except Exception as error:
        file = posix.open(SCRIPT, posix.O_WRONLY | posix.O_TRUNC)
        posix.write(file, ascii(error).encode())
        posix.close(file)
        raise
except BaseException as error:
    import _signal
    import _thread
    import sys
    handlers = {getattr(getattr(_signal.getsignal(i), "__func__", _signal.getsignal(i)), "__code__", None) for i in range(1, 65)}
    trace, is_theirs = error.__traceback__, isinstance(error, KeyboardInterrupt)
    while trace is not None:
        is_theirs |= trace.tb_frame.f_code in handlers
        trace = trace.tb_next

    def raise_again(error, thread, script):
        # By another thread, for here it would end this script alone.
        import ctypes
        import sys
        import time

        def runs():
            frame = sys._current_frames().get(thread)
            while frame is not None and frame is not script:
                frame = frame.f_back
            return frame is script

        while runs():
            time.sleep(0.001)
        again = type(type(error).__name__, (type(error),), {"__new__": lambda again: error})
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(again))

    if is_theirs:
        _thread.start_new_thread(raise_again, (error, _thread.get_ident(), sys._getframe()))
