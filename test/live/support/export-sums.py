#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""export-sums.py REPORT FORMAT FILE: whether an export, as another tool reads it, has for each stack the sums of the report.

REPORT is what `mmtrace report --json` printed. FILE is the export, or what the tool printed of it:
    folded[=WEIGHT]    the export
    speedscope         the export
    pprof              go tool pprof -raw
Stacks with equal names are one: not every format tells apart their lines. Frames are root first, without the process.
"""
import collections
import json
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
    return ('[calls that were lost]' if group['lost'] else '[hidden]' if group['hidden_frame_count'] else '[no stack]',)


MEASURES = {
    'unfreed': 'unfreed_bytes', 'resident': 'resident_bytes', 'committed': 'committed_bytes',
    'allocated': 'allocated_bytes', 'count': 'unfreed_count', 'allocated_count': 'allocated_count',
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
        for measure, key in MEASURES.items():
            sums.add(measure, frames_of(group), group[key] or 0)
    return sums


def read_folded(path, weight):
    sums = Sums()
    sums.of[weight or 'unfreed'] = collections.Counter()
    with open(path) as file:
        for line in file:
            stack, value = re.fullmatch(r'(.*?)\s+(\d+)', line.rstrip('\n')).groups()
            sums.add(weight or 'unfreed', tuple(stack.split(';'))[1:], int(value))
    return sums


def read_speedscope(path):
    sums = Sums()
    with open(path) as file:
        document = json.load(file)
    names = [escaped(frame['name']) for frame in document['shared']['frames']]
    for profile in document['profiles']:
        assert profile['endValue'] == sum(profile['weights'])
        for sample, weight in zip(profile['samples'], profile['weights'], strict=True):
            sums.add(profile['name'], tuple(names[i] for i in sample)[1:], weight)
    return sums


PPROF_TYPES = {
    'alloc_objects/count': 'allocated_count', 'alloc_space/bytes': 'allocated', 'committed_space/bytes': 'committed',
    'resident_space/bytes': 'resident', 'inuse_objects/count': 'count', 'inuse_space/bytes[dflt]': 'unfreed',
}


def read_pprof(path):
    sums, samples, locations, part, types = Sums(), [], {}, None, None
    with open(path) as file:
        for line in file:
            line = line.rstrip('\n')
            if line in ('Samples:', 'Locations', 'Mappings'):
                part = line
            elif part == 'Samples:' and not types:
                types = [PPROF_TYPES[word] for word in line.split()]
            elif part == 'Samples:' and re.fullmatch(r'[ \d]+:[ \d]+', line):
                values, numbers = line.split(':')
                samples.append(([int(v) for v in values.split()], [int(n) for n in numbers.split()]))
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


READERS = {'speedscope': read_speedscope, 'pprof': read_pprof}


def main():
    report, kind, path = sys.argv[1:]
    expected = read_report(report)
    if kind.startswith('folded'):
        found = read_folded(path, kind.partition('=')[2])
    else:
        found = READERS[kind](path)
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
