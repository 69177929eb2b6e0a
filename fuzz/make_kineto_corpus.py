#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/import_kineto: small traces in the forms that torch.profiler writes, and damaged ones.

    fuzz/make_kineto_corpus.py

The forms are those of libkineto's output_json.cpp (torch 1.13 to 2.11), and of export_chrome_trace() in
torch/autograd/profiler_util.py, which builds without Kineto use. The times are chosen so that sums are easy to check:

  step 1 (0 to 1000 us) on the host: forward 100..400 with aten::mm 150..350, whose cudaLaunchKernel 200..210 starts gemm on
  stream 7 at 220..420; then data() to 700, and aten::relu 700..780 with a launch at 710..720 of relu at 730..830;
  cudaDeviceSynchronize 800..850.
"""
import gzip
import json
import pathlib

CORPUS = pathlib.Path(__file__).resolve().parent / 'corpus' / 'import_kineto'
PID, DEVICE, STREAM = 4242, 0, 7
BASE_NS = 1700000000000000000


def event(category, name, start, duration, tid=PID, pid=PID, **arguments):
    return {'ph': 'X', 'cat': category, 'name': name, 'pid': pid, 'tid': tid, 'ts': start, 'dur': duration, 'args': arguments}


def on_gpu(category, name, start, duration, correlation, **arguments):
    return event(category, name, start, duration, STREAM, DEVICE, device=DEVICE, context=1, stream=STREAM,
                 correlation=correlation, **arguments)


def events():
    launch = {'External id': 3, 'cbid': 211}
    return [
        {'ph': 'M', 'name': 'process_name', 'ts': 0, 'pid': PID, 'tid': 0, 'args': {'name': 'python'}},
        {'ph': 'M', 'name': 'thread_name', 'ts': 0, 'pid': PID, 'tid': PID, 'args': {'name': 'thread 4242 (trainer)'}},
        {'ph': 'M', 'name': 'thread_name', 'ts': 0, 'pid': PID, 'tid': 77, 'args': {'name': 'thread 77 (idle)'}},
        event('user_annotation', 'ProfilerStep#1', 0, 1000),
        event('python_function', 'train.py(10): step', 50, 900, **{'Python id': 1, 'Python parent id': None}),
        event('python_function', 'train.py(3): forward', 100, 300, **{'Python id': 2, 'Python parent id': 1}),
        event('python_function', '<built-in method mm of type object at 0x7f0011223344>', 140, 220),
        event('cpu_op', 'aten::mm', 150, 200, **{'External id': 3, 'Sequence number': 9, 'Input Dims': [[64, 64], [64, 64]]}),
        event('cuda_runtime', 'cudaLaunchKernel', 200, 10, correlation=11, **launch),
        on_gpu('kernel', 'void gemm<float>(float const*, float*)', 220, 200, 11, grid=[8, 8, 1], block=[128, 1, 1],
               **{'registers per thread': 32, 'shared memory': 1024}),
        {'ph': 's', 'id': 11, 'pid': PID, 'tid': PID, 'ts': 200, 'cat': 'ac2g', 'name': 'ac2g'},
        {'ph': 'f', 'id': 11, 'pid': DEVICE, 'tid': STREAM, 'ts': 220, 'cat': 'ac2g', 'name': 'ac2g', 'bp': 'e'},
        event('python_function', 'train.py(7): data', 400, 300),
        event('cpu_op', 'aten::relu', 700, 80, **{'External id': 4}),
        event('cuda_runtime', 'cudaLaunchKernel', 710, 10, correlation=12),
        on_gpu('kernel', 'relu_kernel(float*)', 730, 100, 12, grid=[4, 1, 1], block=[256, 1, 1]),
        event('cuda_runtime', 'cudaMemcpyAsync', 785, 5, correlation=13),
        on_gpu('gpu_memcpy', 'Memcpy DtoH (Device -> Pinned)', 830, 10, 13, bytes=4096),
        event('cuda_runtime', 'cudaDeviceSynchronize', 800, 50),
        {'ph': 'i', 's': 't', 'cat': 'cpu_instant_event', 'name': '[memory]', 'pid': PID, 'tid': PID, 'ts': 160,
         'args': {'Total Allocated': 16384, 'Total Reserved': 2097152, 'Bytes': 16384, 'Addr': 140000000, 'Device Id': 0,
                  'Device Type': 1}},
        {'ph': 'i', 's': 'g', 'name': 'Record Window End', 'pid': '', 'tid': '', 'ts': 1000},
        event('Trace', 'PyTorch Profiler (0)', 0, 1000, 'PyTorch Profiler', 'Spans'),
        event('overhead', 'Activity Buffer Request', 20, 5, 0, -1),
        event('gpu_user_annotation', 'ProfilerStep#1', 220, 620, STREAM, DEVICE),
    ]


def trace(**more):
    about = {'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3', 'totalGlobalMem': 1}],
             'displayTimeUnit': 'ms', 'baseTimeNanoseconds': BASE_NS, 'traceEvents': events(), 'traceName': 'trace.json'}
    about.update(more)
    return about


def legacy():
    return [{'name': name, 'ph': 'X', 'ts': start, 'dur': duration, 'tid': tid, 'pid': 'CPU functions', 'args': {}}
            for name, start, duration, tid in (('step', 10, 100, 1), ('aten::mm', 20, 50, 1), ('aten::mul', 20, 50, 2),
                                               ('aten::empty', 25, 0, 1), ('aten::copy_', 30, 45, 1))]


def changed(which, **more):
    some = events()
    next(one for one in some if one['name'] == which).update(more)
    return trace(traceEvents=some)


def main():
    small = json.dumps(trace()).encode()
    files = {
        'small.json': small,
        'legacy.json': json.dumps(legacy()).encode(),
        'epoch.json': json.dumps(trace(baseTimeNanoseconds=0, traceEvents=[
            dict(one, ts=BASE_NS // 1000 + one['ts']) for one in events()])).encode(),
        'cut.json': small[:len(small) // 2],
        'cut.json.gz': gzip.compress(small, mtime=0)[:200],
        'small.json.gz': gzip.compress(small, mtime=0),
        'empty.json': json.dumps(trace(traceEvents=[])).encode(),
        'no_list.json': json.dumps(trace(traceEvents={})).encode(),
        'types.json': json.dumps(changed('train.py(10): step', ts='soon', pid=[])).encode(),
        'no_thread.json': json.dumps(changed('train.py(10): step', tid=-5)).encode(),
        'huge.json': json.dumps(changed('cudaLaunchKernel', ts=1e300, dur=1e300)).encode(),
        'huge_integer.json': json.dumps(changed('cudaLaunchKernel', dur=3999999999999999, args={'correlation': 2 ** 63 - 1})).encode(),
        'overflow.json': small.replace(b'"dur": 200,', b'"dur": 99999999999999999999999,'),
        'base.json': json.dumps(trace(baseTimeNanoseconds=-1)).encode(),
        'deep.json': b'{"traceEvents": [' + b'[' * 100000,
        'behind.json': small + b'x',
        'gap_without_launch.json': json.dumps(changed('cudaLaunchKernel', args={})).encode(),
    }
    CORPUS.mkdir(exist_ok=True)
    for name, contents in files.items():
        (CORPUS / name).write_bytes(contents)


if __name__ == '__main__':
    main()
