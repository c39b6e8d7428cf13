// SPDX-License-Identifier: Apache-2.0
// throws SECONDS: exceptions, and what the collector has to do for them.
import core.time : MonoTime, seconds;
import std.conv : to;
import std.stdio : writeln;

pragma(inline, false) int deep(int n, ref long count)
{
    scope (exit)
        count++;
    if (n == 0)
        throw new Exception("the bottom");
    return deep(n - 1, count) + 1;
}

void main(string[] words)
{
    auto end = MonoTime.currTime + seconds(words.length > 1 ? words[1].to!int : 5);
    long count, caught;
    while (MonoTime.currTime < end)
        foreach (i; 0 .. 200)
        {
            try
                deep(i % 10, count);
            catch (Exception e)
                caught += e.msg.length;
        }
    writeln(count, " ", caught);
}
