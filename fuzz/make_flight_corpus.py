#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes fuzz/corpus/import_flight: small dumps of PyTorch's Flight Recorder, as pickles and as JSON, and damaged ones.

    fuzz/make_flight_corpus.py

The form is that of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (torch 2.14, version 2.10 of the dump) and, without
thread names and with another version, of torch 2.4. torch-2.14-gloo_0 is not made here: torch wrote it, of three
collectives. tests/e2e/test_flight.py makes its dumps with the same functions.
"""
import json
import pathlib
import pickle

CORPUS = pathlib.Path(__file__).resolve().parent / 'corpus' / 'import_flight'
BASE_NS = 1700000000000000000
TORCH = '/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py'


def frames(line, func='train_step', file='/home/user/train.py'):
    """Innermost first."""
    return [{'name': 'all_reduce', 'filename': TORCH, 'line': 2936}, {'name': 'wrapper', 'filename': TORCH, 'line': 83},
            {'name': func, 'filename': file, 'line': line}, {'name': '<module>', 'filename': file, 'line': 120}]


def entry(record, name, seq, state='completed', group=('0', 'default_pg'), sizes=((64, 64),), dtype='Float', line=88, **more):
    created = BASE_NS + record * 1000000
    one = {
        'frames': frames(line), 'record_id': record, 'pg_id': int(group[0]), 'process_group': group, 'thread_name': 'python',
        'thread_id': '139', 'collective_seq_id': seq, 'p2p_seq_id': 0, 'op_id': seq, 'profiling_name': name,
        'time_created_ns': created, 'input_sizes': [list(size) for size in sizes], 'input_dtypes': [dtype] * len(sizes),
        'output_sizes': [list(size) for size in sizes], 'output_dtypes': [dtype] * len(sizes), 'state': state,
        'time_discovered_started_ns': created + 1000 if state != 'scheduled' else None,
        'time_discovered_completed_ns': created + 500000 if state == 'completed' else None,
        'retired': state == 'completed', 'timeout_ms': 600000, 'is_p2p': False}
    if state == 'completed':
        one['duration_ms'] = 0.25
    one.update(more)
    return one


def message(record, name, seq, group, **more):
    return entry(record, name, 0, group=group, is_p2p=True, p2p_seq_id=seq, sizes=((10,),), **more)


def dump(entries, groups, status=None, version='2.10'):
    """groups: name -> (description, ranks)."""
    return {
        'version': version,
        'pg_config': {name: {'name': name, 'desc': about, 'ranks': json.dumps(ranks)} for name, (about, ranks) in groups.items()},
        'comm_lib_version': '2.27.3', 'pg_status': status or {}, 'entries': entries}


def as_json(value):
    """As dump_json() writes it: no frames, 0 for no time, texts in pg_status, sorted keys."""
    value = json.loads(json.dumps(value))
    for one in value['entries']:
        del one['frames']
        for name in ('time_discovered_started_ns', 'time_discovered_completed_ns'):
            one[name] = one[name] or 0
    value['pg_status'] = {name: {key: str(number) for key, number in one.items()} for name, one in value['pg_status'].items()}
    if not value['entries']:
        del value['entries']
    return json.dumps(value, sort_keys=True, separators=(',', ':')).encode()


def as_pickle(value, protocol=2):
    return pickle.dumps(value, protocol)


def example():
    groups = {'0': ('default_pg', [0, 1, 2, 3]), '1': ('pipeline', [1, 3])}
    status = {'0': {'last_enqueued_collective': 3, 'last_started_collective': 3, 'last_completed_collective': 2}}
    return dump([entry(0, 'nccl:broadcast', 1, sizes=((8,), (2, 3))), entry(1, 'nccl:all_reduce', 2, line=90),
                 message(2, 'nccl:send 0->1', 1, ('1', 'pipeline')), message(3, 'nccl:recv 0<-1', 2, ('1', 'pipeline')),
                 entry(4, 'nccl:all_reduce', 3, 'started')], groups, status)


class Harmful:
    def __reduce__(self):
        return print, ('a pickle that is run says this',)


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    value, file = example(), {}
    for protocol in 2, 3, 4, 5:
        file['pickle_%d' % protocol] = as_pickle(value, protocol)
    file['json'] = as_json(value)
    file['empty.json'] = as_json(dump([], {}))
    old = dump([dict(entry(0, 'nccl:all_reduce', 4), seq_id=4)], {'0': ('', [0])}, version='1.5')
    del old['entries'][0]['collective_seq_id']
    file['old'] = as_pickle(old)
    file['harmful'] = as_pickle(dict(value, entries=[Harmful()]))
    whole = as_pickle(value)
    file['cut'] = whole[:len(whole) // 2]
    file['cut.json'] = file['json'][:len(file['json']) // 2]
    odd = dump([entry(0, 'all_reduce', -1, sizes=((1 << 40, 1 << 40),)), {'state': 'started'}, 7,
                entry(1, 'nccl:send 9->', 1, dtype='Complicated'), entry(2, ':', 1, group='0', frames=[]),
                entry(3, 'gloo:all_reduce', 2, 'scheduled', retired=True)], {'0': ('default_pg', [])})
    file['odd'] = as_pickle(odd)
    # 2^60 paths to one list of frames; and a list that contains itself.
    deep = frames(1)
    for _ in range(60):
        deep = [deep, deep]
    file['deep'] = as_pickle(dump([entry(0, 'nccl:all_reduce', 1, frames=deep, input_sizes=deep)], {}))
    own = []
    own.append(own)
    file['own'] = as_pickle(dump([entry(0, 'nccl:all_reduce', 1, input_sizes=own, frames=own)], {}))
    many = [entry(0, 'nccl:all_reduce', 1)] * 3000
    file['shared'] = as_pickle(dump(many, {}))
    for name, text in (('memo', b'\x80\x02}q\xffh\xfe.'), ('mark', b'\x80\x02(}X\x07\x00\x00\x00version(u.'),
                       ('stack', b'\x80\x02s.pg_config'), ('root', b'\x80\x02K\x01.pg_config'),
                       ('list.json', b'{"pg_config": [], "version": 1, "entries": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}')):
        file[name] = text
    for name, content in file.items():
        (CORPUS / name).write_bytes(content)


if __name__ == '__main__':
    main()
