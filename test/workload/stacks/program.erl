%% SPDX-License-Identifier: LGPL-2.1-or-later
%% Binaries so large that the allocator maps them, from functions, closures, handlers of exceptions and processes.
-module(program).
-export([start/1]).

-define(BLOCK, 1 bsl 20).

leak_binary() ->
    binary:copy(<<0>>, ?BLOCK).

by_closure(Action) ->
    {closure, Action()}.

by_exception() ->
    try throw(leak) catch throw:leak -> {caught, leak_binary()} end.

one_round() ->
    [leak_binary(), by_closure(fun leak_binary/0), by_exception(), lists:map(fun(_) -> leak_binary() end, [1])].

wait(Word, wait) ->
    io:format("~s~n", [Word]),
    io:get_line("");
wait(_Word, run) ->
    ok.

%% COUNT wait|run
start([Count, Waits]) ->
    wait("ready", list_to_atom(Waits)),
    Kept = [one_round() || _ <- lists:seq(1, list_to_integer(Count))],
    Self = self(),
    spawn(fun() -> Self ! one_round() end),
    receive _Other -> true = length(Kept) > 0 end,
    wait("done", list_to_atom(Waits)),
    halt(0).
