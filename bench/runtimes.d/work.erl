%% SPDX-License-Identifier: Apache-2.0
-module(work).
-export([main/1]).

tree(0) -> 1;
tree(N) -> tree(N - 1) + tree(N - 1) + 1.

maps(Seed) ->
    M = lists:foldl(fun(I, Acc) -> Acc#{I * Seed rem 1009 => integer_to_list(I)} end, #{}, lists:seq(1, 500)),
    lists:sum([length(V) || V <- maps:values(M)]) + length(lists:sort([K * 7919 rem 1009 || K <- maps:keys(M)])).

main(Seconds) -> run(erlang:monotonic_time(second) + Seconds, 1, 0).

run(End, N, Sum) ->
    case erlang:monotonic_time(second) < End of
        true -> run(End, N + 1, Sum + tree(12) + maps(N));
        false -> io:format("~p~n", [Sum > 0]), halt(0)
    end.
