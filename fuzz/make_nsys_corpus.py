#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small database as `nsys export --type sqlite` makes it: make_nsys_corpus.py OUTPUT

Tables and columns are those of the "SQLite Schema Reference" in the Nsight Systems User Guide; the values are made up.
"""
import os
import sqlite3
import sys

PID, TID = 4711, 4712
STRINGS = ["void axpy(float, float*, float*)", "axpy", "cudaLaunchKernel_v7000", "cudaMemcpy_v3020", "step", "cuInit"]


def main():
    path = sys.argv[1]
    if os.path.exists(path):
        os.unlink(path)
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE TARGET_INFO_GPU(vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT);
        CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
        CREATE TABLE TARGET_INFO_SYSTEM_ENV(globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum TEXT, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
            contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
            demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, registersPerThread INTEGER NOT NULL,
            gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,
            blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
            dynamicSharedMemory INTEGER NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
            contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
            bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
            contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
            value INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
            globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
        CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
            textId INTEGER, domainId INTEGER);
    """)
    db.executemany("INSERT INTO StringIds VALUES(?,?)", list(enumerate(STRINGS, 1)))
    thread = 1 << 48 | PID << 24 | TID
    db.execute("INSERT INTO TARGET_INFO_GPU VALUES(0, 0, 'NVIDIA H200', '0000:18:00.0')")
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1700000000000000000, '', '')")
    db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES(0, '', 'Hostname', '', 'box')")
    for n in range(3):
        start = 1000000 + n * 100000
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?,?,0,1,7,?,?,1,2,NULL,32,128,1,1,256,1,1,4096,0)",
                   (start, start + 5000 + n * 1000, 10 + n, PID << 24))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?,?,0,?,?,3,0)", (start - 9000, start - 2000, thread, 10 + n))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(500000, 700000, 0, ?, 5, 4, 0)", (thread,))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(600000, 650000, 0, 1, 7, 5, ?, 1048576, 1, 1, 3)", (PID << 24,))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(660000, 661500, 0, 1, 7, 6, ?, 0, 4096, 3)", (PID << 24,))
    db.execute("INSERT INTO NVTX_EVENTS VALUES(400000, 1300000, 59, NULL, ?, 5, 0)", (thread,))
    db.execute("INSERT INTO NVTX_EVENTS VALUES(410000, 420000, 59, 'load', ?, NULL, 0)", (thread,))
    db.execute("INSERT INTO NVTX_EVENTS VALUES(430000, NULL, 34, 'a mark', ?, NULL, 0)", (thread,))
    db.commit()
    db.execute("VACUUM")
    db.close()


if __name__ == "__main__":
    main()
