#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""export-sums.py REPORT FORMAT FILE: whether an export, as another tool reads it, has for each stack the sums of the report.

REPORT is what `mmtrace report --json` printed. FILE is the export, or what the tool printed of it:
    folded[=WEIGHT]    the export
    pprof              go tool pprof -raw
    firefox            the export; what is retained is found as the viewer does, by addresses within a thread
    profiler-cli       profiler-cli thread samples-top-down --json of what is retained
    perfetto           protoc --decode with export.proto
Stacks with equal names are one: not every format tells apart their lines. Frames are root first, without the process.
"""
import collections
import json
import os
import re
import sys


def escaped(name):
    """As mmtrace escapes a name for text; JSON has escaped what is no UTF-8 already."""
    hidden = lambda c: c < 0x20 or 0x7f <= c < 0xa0 or c in (0x61c, 0xfeff) or \
        0x200b <= c <= 0x200f or 0x2028 <= c <= 0x202e or 0x2060 <= c <= 0x206f
    return ''.join(''.join('\\x%02x' % b for b in c.encode()) if hidden(ord(c)) else c for c in name)


def frame_name(frame):
    if frame['function'] is not None:
        return frame['function']
    if frame['kind'] == 'native':
        return '%s+%s' % (frame['module'], frame['module_offset'])
    return ('[jit] ' if frame['kind'] == 'jit' else '') + frame['address']


def frames_of(group):
    if group['frames']:
        return tuple(escaped(frame_name(f)) for f in reversed(group['frames']))
    return ('[calls that were lost]' if group['lost'] else '[no stack]',)


MEASURES = {
    'memory': ['memory_bytes'], 'unfreed': ['unfreed_bytes'], 'resident': ['resident_bytes', 'resident_before_bytes'],
    'committed': ['committed_bytes', 'committed_before_bytes'], 'allocated': ['allocated_bytes'],
    'count': ['unfreed_count'], 'allocated_count': ['allocated_count'],
}


class Sums:
    def __init__(self):
        self.of = collections.defaultdict(collections.Counter)

    def add(self, measure, stack, value):
        if value:
            self.of[measure][stack] += value


def read_report(path):
    sums = Sums()
    with open(path) as file:
        report = json.load(file)
    for group in report['groups']:
        for measure, keys in MEASURES.items():
            sums.add(measure, frames_of(group), sum(group[key] or 0 for key in keys))
    return sums


def read_folded(path, weight):
    sums = Sums()
    sums.of[weight or 'memory'] = collections.Counter()
    with open(path) as file:
        for line in file:
            stack, value = re.fullmatch(r'(.*?)\s+(\d+)', line.rstrip('\n')).groups()
            sums.add(weight or 'memory', tuple(stack.split(';'))[1:], int(value))
    return sums


def allocation_functions():
    """What exports for pprof leave out: an expression that the profile contains for the viewer."""
    header = os.path.join(os.environ['SOURCE'], 'lib/output/export/export-report.h')
    with open(header) as file:
        words = re.search(r'#define EXPORT_ALLOCATION_FUNCTIONS((?:.*\\\n)+.*)', file.read())[1]
    return re.compile(''.join(re.findall(r'"(.*)"', words)).replace('\\\\', '\\'))


def simple(name):
    """As the viewer compares it: without arguments."""
    return re.split(r'(?<!operator)\((?!anonymous namespace\))', name)[0]


def without_dropped(sums):
    """The innermost frames up to one of these are left out, unless all are."""
    shown, allocation = Sums(), allocation_functions()
    for measure, values in sums.of.items():
        for stack, value in values.items():
            dropped = [i for i, name in enumerate(stack) if i and allocation.fullmatch(simple(name))]
            shown.add(measure, stack[:dropped[0]] if dropped else stack, value)
    return shown


PPROF_TYPES = {
    'alloc_objects/count': 'allocated_count', 'alloc_space/bytes': 'allocated', 'committed_space/bytes': 'committed',
    'resident_space/bytes': 'resident', 'inuse_objects/count': 'count', 'inuse_space/bytes': 'unfreed',
}


def read_pprof(path):
    sums, samples, locations, unnamed, part, types = Sums(), [], {}, {}, None, None
    with open(path) as file:
        for line in file:
            line = line.rstrip('\n')
            if line in ('Samples:', 'Locations', 'Mappings'):
                part = line
            elif part == 'Samples:' and not types:
                shown = [word[:-len('[dflt]')] for word in line.split() if word.endswith('[dflt]')]
                types = [PPROF_TYPES[word.removesuffix('[dflt]')] for word in line.split()]
                assert shown == ['resident_space/bytes' if 'resident' in types else 'committed_space/bytes'], line
            elif part == 'Samples:' and re.fullmatch(r'[ \d]+:[ \d]+', line):
                values, numbers = line.split(':')
                samples.append(([int(v) for v in values.split()], [int(n) for n in numbers.split()]))
            elif part == 'Locations' and re.fullmatch(r' *\d+: 0x\w+ M=\d+ ', line):
                number, address, mapping = re.fullmatch(r' *(\d+): (0x\w+) M=(\d+) ', line).groups()
                unnamed[int(number)] = (int(mapping), int(address, 16))
            elif part == 'Mappings':
                # The path may contain spaces, the build-id does not.
                number, path, flags = re.fullmatch(r'(\d+): \S+ (.*) \S* ((?:\[\w\w\])*)', line).groups()
                # Viewers symbolize a mapping without these flags.
                assert ('[FN]' in flags) == (int(number) not in {mapping for mapping, _ in unnamed.values()}), line
                for location, (mapping, address) in unnamed.items():
                    if mapping == int(number):
                        locations[location] = ['%s+0x%x' % (path.rsplit('/', 1)[-1], address)]
            elif part == 'Locations':
                number, name = re.fullmatch(r'(?: *(\d+): 0x\w+ (?:M=\d+ )?| +)(.*) \S*:\d+(?::\d+)? s=.*', line).groups()
                if number:
                    current = locations.setdefault(int(number), [])
                current.append(name)
    for values, numbers in samples:
        stack = tuple(name for number in numbers for name in locations[number])[::-1]
        for measure, value in zip(types, values, strict=True):
            sums.add(measure, stack, value)
    return sums




def read_firefox(path):
    sums = Sums()
    with open(path) as file:
        profile = json.load(file)
    shared = profile['shared']
    for name in ('stackTable', 'frameTable', 'funcTable', 'resourceTable', 'sources'):
        table = shared[name]
        assert all(len(table[column]) == table['length'] for column in table if column != 'length'), name

    def stack_of(number):
        frames = []
        while True:
            function = shared['frameTable']['func'][shared['stackTable']['frame'][number]]
            frames.append(escaped(shared['stringArray'][shared['funcTable']['name'][function]]))
            offset = shared['stackTable']['prefixOffset'][number]
            if not offset:
                return tuple(reversed(frames))
            number -= offset

    retained, samples = 0, Sums()
    for thread in profile['threads']:
        # The viewer opens on these.
        table = thread['samples']
        assert table['weightType'] == 'bytes' and table['time'] == sorted(table['time'])
        assert {table['length']} == {len(table[column]) for column in ('stack', 'time', 'weight')}
        assert (table['stack'][0], table['stack'][-1], table['weight'][0], table['weight'][-1]) == (None, None, 0, 0)
        for weight, stack in zip(table['weight'][1:-1], table['stack'][1:-1]):
            samples.add('unfreed', stack_of(stack), weight)
        table = thread.get('nativeAllocations')
        if not table:
            continue
        assert table['time'] == sorted(table['time'])
        live = {}
        for weight, stack, address in zip(table['weight'], table['stack'], table['memoryAddress'], strict=True):
            if weight < 0:
                assert live.pop(address) == (-weight, stack)
            else:
                sums.add('allocated', stack_of(stack), weight)
                assert address not in live
                live[address] = (weight, stack)
        for weight, stack in live.values():
            sums.add('unfreed', stack_of(stack), weight)
            retained += weight
    assert samples.of['unfreed'] == sums.of['unfreed'], 'samples differ from native allocations'
    for counter in profile['counters']:
        if counter['name'] == 'unfreed':
            assert sum(counter['samples']['count']) == retained
    return sums


def read_profiler_cli(path):
    sums = Sums()
    with open(path) as file:
        answer = json.load(file)
    assert answer['callTreeSummaryStrategy'] in ('timing', 'native-retained-allocations')
    waiting = [((), answer['regularCallTree'])]
    while waiting:
        stack, node = waiting.pop()
        sums.add('unfreed', stack, node['selfSamples'])
        assert not node.get('childrenTruncated')
        waiting += [(stack + (escaped(child['name']),), child) for child in node['children']]
    return sums


def decode(path):
    """Messages of `protoc --decode` as dictionaries of lists."""
    top = {}
    open_messages = [top]
    with open(path, encoding='utf-8') as file:
        for line in file:
            line = line.strip()
            if line.endswith('{'):
                message = {}
                open_messages[-1].setdefault(line[:-1].strip(), []).append(message)
                open_messages.append(message)
            elif line == '}':
                open_messages.pop()
            else:
                key, value = line.split(': ', 1)
                if value.startswith('"'):
                    value = re.sub(rb'\\([0-7]{3}|.)', lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else
                                   {b'n': b'\n', b't': b'\t', b'r': b'\r'}.get(m[1], m[1]), value[1:-1].encode()).decode()
                open_messages[-1].setdefault(key, []).append(value)
    return top


class Sequence:
    """What a packet sequence has interned so far."""

    def __init__(self):
        self.tables = collections.defaultdict(dict)

    def learn(self, data):
        for table, messages in data.items():
            for message in messages:
                iid = message['iid'][0]
                assert iid not in self.tables[table], 'interned twice'
                self.tables[table][iid] = message

    def stack(self, frame_ids):
        names = []
        for frame_id in frame_ids:
            frame = self.tables['frames'][frame_id]
            mapping = self.tables['mappings'][frame['mapping_id'][0]]
            assert all(path in self.tables['mapping_paths'] for path in mapping['path_string_ids'])
            names.append(self.tables['function_names'][frame['function_name_id'][0]]['str'][0])
        return tuple(names)


def read_perfetto(path):
    sums, samples, heaps, sequences = Sums(), Sums(), {}, collections.defaultdict(Sequence)
    trace = decode(path)
    clocks = set()
    tracks = set()
    for packet in trace['packet']:
        number = packet['trusted_packet_sequence_id'][0]
        sequence = sequences[number]
        assert packet['timestamp_clock_id'] == ['3']
        if 'clock_snapshot' in packet:
            clocks |= {clock['clock_id'][0] for clock in packet['clock_snapshot'][0]['clocks']}
        if packet.get('sequence_flags') == ['1']:
            sequence.tables.clear()
        for data in packet.get('interned_data', []):
            sequence.learn(data)
        for profile in packet.get('profile_packet', []):
            assert profile['index'] == ['0']
            for dump in profile['process_dumps']:
                name = dump['heap_name'][0]
                assert re.fullmatch('[a-z.]+', name)
                # A stack in two heaps of one sequence would be treated as the same.
                assert heaps.setdefault(number, name) == name
                for sample in dump['samples']:
                    stack = sequence.stack(sequence.tables['callstacks'][sample['callstack_id'][0]]['frame_ids'])
                    allocated, freed, count, free_count = (int(sample[key][0]) for key in (
                        'self_allocated', 'self_freed', 'alloc_count', 'free_count'))
                    # Bytes of a stack without a live allocation are not shown.
                    assert allocated == freed or count > free_count
                    sums.add('allocated', stack, allocated)
                    sums.add('unfreed', stack, allocated - freed)
        for sample in packet.get('stack_sample', []):
            assert sample['primary_descriptor'][0]['unit'] == ['4']
            stack = sequence.tables['callstacks'][sample['callstack_iid'][0]]['frame_ids']
            samples.add('unfreed', sequence.stack(stack), int(sample['primary_weight'][0]))
        for descriptor in packet.get('track_descriptor', []):
            assert descriptor['uuid'][0] not in tracks
            tracks.add(descriptor['uuid'][0])
        for event in packet.get('track_event', []):
            assert event['track_uuid'][0] in tracks
    # The time of a heap profile is CLOCK_MONOTONIC_COARSE.
    assert {'3', '4'} <= clocks
    assert samples.of['unfreed'] == sums.of['unfreed'], 'samples differ from heap profiles'
    return sums


READERS = {
    'pprof': read_pprof,
    'firefox': read_firefox, 'perfetto': read_perfetto,
    'profiler-cli': read_profiler_cli,
}


def main():
    report, kind, path = sys.argv[1:]
    expected = read_report(report)
    if kind.startswith('folded'):
        found = read_folded(path, kind.partition('=')[2])
    else:
        found = READERS[kind](path)
    if kind == 'pprof':
        expected = without_dropped(expected)
    if not found.of:
        sys.exit('%s: nothing in it' % path)
    for measure, sums in found.of.items():
        if sums == expected.of[measure]:
            continue
        print('%s: %s differs' % (path, measure))
        for stack in sorted(set(sums) | set(expected.of[measure])):
            if sums[stack] != expected.of[measure][stack]:
                print('  %s: %d, the report has %d' % (';'.join(stack), sums[stack], expected.of[measure][stack]))
        sys.exit(1)
    print('%s: %s: equal' % (path, ', '.join(sorted(found.of))))


main()
