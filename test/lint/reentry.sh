#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder is not re-entered. Only the loop and the thread of the ring reader read the rings; no job does. Reading
# them writes records to the file and queues what they mean for processes: it calls no job, changes none of the tables
# that jobs use, and does not come back to itself. Only the loop applies what was queued. Jobs do not use the state of
# the ring reader, nor the ring reader that of the jobs.
set -u
cd "${SOURCE:?}" || exit 1

# check DIRECTORY: reads lib/capture there. Every mention of a function counts as a call of it.
check()
{
	find "$1/lib/capture" -name '*.c' -print0 | sort -z | xargs -0 awk '
	# What reading the rings may call: what belongs to the rings, what appends to the file, and what only looks at tables.
	function may_be_called(file, name)
	{
		if (file ~ /\/(recorder\/(ring-reader|recorder|large-dumps)|file-metadata|perf\/(attach|cpu-hotplug|perf-events|ring-buffers|scope)|procfs\/(clock|proc|scheduling-priority))[.]c$/)
			return !(name ~ /^(ring_reader_(read|give_way|catch_up|read_file|begin_wait|end_wait|start|end)|incremental_metadata_write|file_metadata_add_(head|sections))$/)
		if (file ~ /\/(process\/process-table|recorder\/process-events)[.]c$/)
			return name ~ /^(process_table_find|process_events_(push|note_call)|in_flight_note_outside)$/
		return 0
	}

	function define(head,    name)
	{
		name = head
		sub(/[(].*/, "", name)
		sub(/.*[^A-Za-z_0-9]/, "", name)
		defined[FILENAME, name] = 1
		if (head !~ /^static/)
			file_of[name] = FILENAME
		return name
	}

	function note_words(text,    word)
	{
		while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
			word = substr(text, RSTART, RLENGTH)
			if (substr(text, RSTART - 1, 1) != "." && substr(text, RSTART - 2, 2) != "->")
				words[FILENAME, name] = words[FILENAME, name] " " word
			text = "  " substr(text, RSTART + RLENGTH)
		}
	}

	function report(text)
	{
		print text
		failed = 1
	}

	FNR == 1 { head = ""; inside = 0; comment = 0 }

	FILENAME ~ /\/(memory|jit-code|runtimes)\/|(build-id-notes|snapshot)[.]c$/ && /recorder->reader[.]/ {
		report(FILENAME ":" FNR ": a job uses the state of the ring reader")
	}

	FILENAME ~ /\/perf\/|(ring-reader|large-dumps)[.]c$/ && /recorder->jobs[.]/ {
		report(FILENAME ":" FNR ": the ring reader uses the state of jobs")
	}

	{
		line = $0
		gsub(/"([^"\\]|\\.)*"/, "", line)
		gsub(/\/[*].*[*]\//, "", line)
		if (comment) {
			if (line !~ /[*]\//)
				next
			sub(/.*[*]\//, "", line)
			comment = 0
		}
		if (line ~ /\/[*]/) {
			sub(/\/[*].*/, "", line)
			comment = 1
		}
		if (inside) {
			note_words("  " line)
			inside = line !~ /^}/
		} else if (line ~ /^[{]/ && head ~ /[(]/) {
			name = define(head)
			inside = 1
		} else if (line ~ /^[ \t]/ && head != "") {
			head = head line
		} else {
			head = line ~ /^[a-z]/ && line !~ /[;={]/ ? line : ""
		}
	}

	END {
		start = file_of["ring_reader_read"] SUBSEP "ring_reader_read"
		if (!(start in defined)) {
			print "ring_reader_read() was not found"
			exit 1
		}
		queue[count = 1] = start
		from[start] = ""
		for (i = 1; i <= count; i++) {
			split(queue[i], place, SUBSEP)
			total = split(words[queue[i]], called, " ")
			for (j = 1; j <= total; j++) {
				word = called[j]
				next_place = ((place[1], word) in defined) ? place[1] SUBSEP word : file_of[word] SUBSEP word
				if (next_place == start) {
					print "reading the rings comes back to itself: " place[2] "() calls " word "()"
					failed = 1
				}
				if (!(next_place in defined) || next_place in from)
					continue
				from[next_place] = queue[i]
				split(next_place, target, SUBSEP)
				if (!may_be_called(target[1], word)) {
					path = word
					for (back = queue[i]; from[back] != ""; back = from[back])
						path = substr(back, index(back, SUBSEP) + 1) "() > " path
					print target[1] ": reading the rings calls " word "(): ring_reader_read() > " path "()"
					failed = 1
				}
				queue[++count] = next_place
			}
		}
		if (count < 20) {
			print "only " count " functions were found below ring_reader_read()"
			failed = 1
		}
		# What was queued is applied, and processes are forgotten, by the loop and by what comes before and after it.
		for (key in words) {
			split(key, place, SUBSEP)
			if (index(words[key] " ", " ring_reader_read ") &&
			    place[2] !~ /^(loop_drain|read_beside_jobs)$/)
				report(place[1] ": " place[2] "() calls ring_reader_read(): only loop_drain() and the thread do")
			if (place[1] ~ /\/(record-loop|session|targets|process\/process-table)[.]c$/)
				continue
			if (match(" " words[key] " ", / (loop_(apply_events|drain)|process_table_(add|drop_last|forget_ended)) /)) {
				text = substr(" " words[key] " ", RSTART + 1, RLENGTH - 2)
				print place[1] ": " place[2] "() calls " text "(): only the loop does"
				failed = 1
			}
		}
		exit failed
	}' >&2
}

check . || exit 1

# The check finds what it is there to find.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# expect WHAT FILE SCRIPT: after this change by sed the check finds WHAT.
expect()
{
	rm -rf "$scratch/lib"
	mkdir -p "$scratch/lib"
	cp -r lib/capture "$scratch/lib/"
	sed -i "$3" "$scratch/lib/capture/$2"
	cmp -s "lib/capture/$2" "$scratch/lib/capture/$2" && { echo "nothing to change in $2: $3" >&2; exit 1; }
	check "$scratch" 2>"$scratch/output" && { echo "the check does not find: $1" >&2; exit 1; }
	grep -qF "$1" "$scratch/output" || { echo "the check does not find: $1; but:" >&2; cat "$scratch/output" >&2; exit 1; }
}
expect 'calls process_table_add()' recorder/ring-reader.c \
	's/^\(\tconst struct process_event seen = .*\)$/\1\n\tprocess_table_add(\&recorder->processes, pid, false);/'
expect 'calls snapshot_take()' recorder/recorder.c 's/^\trecorder->reader.drained = false;$/&\n\tsnapshot_take(recorder, 1, 0, NULL);/'
expect 'calls ring_reader_give_way()' perf/attach.c 's/^\tbool unseen = root .*$/&\n\tring_reader_give_way(NULL);/'
expect 'take() calls loop_drain()' snapshot.c 's/^\terror = error ?: read_maps(reading, fd);$/\terror = loop_drain(reading->recorder);/'
expect 'take() calls ring_reader_read()' snapshot.c 's/^\terror = error ?: read_maps(reading, fd);$/\terror = ring_reader_read(reading->recorder);/'
expect 'a job uses the state of the ring reader' snapshot.c 's/^\terror = error ?: read_maps(reading, fd);$/\treading->recorder->reader.drained = false;/'
expect 'the ring reader uses the state of jobs' recorder/large-dumps.c 's/recorder->reader[.]/recorder->jobs./'
