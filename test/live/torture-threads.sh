#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Threads' random memory calls on what is theirs at the time: at every checkpoint the model equals the kernel's maps.
# What is left out here is in test/torture.
source "$SOURCE/test/live/support/recording.bash"
source "$SOURCE/test/live/support/torture.bash"

need_perf
# shmdt unmaps whatever fits the segment above its address, also what belongs to other threads: not free of races.
torture_case threads 1 30 2000 without=remap-several without=map-zero-private without=io-setup without=detach
