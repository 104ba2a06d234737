// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks mapped by native code that Mono calls: from methods, delegates, generic and virtual methods, handlers of
// exceptions, callbacks and a thread. program.exe ROUNDS
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class Program
{
    delegate int Callback(int number);

    [DllImport("native", EntryPoint = "native_leak")]
    static extern int Leak(UIntPtr bytes);

    [DllImport("native", EntryPoint = "native_call")]
    static extern int Call(Callback callback, int number);

    abstract class Shape
    {
        public abstract void Draw<T>(T scale);
    }

    sealed class Circle : Shape
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override void Draw<T>(T scale)
        {
            LeakBlock();
            GC.KeepAlive(scale);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void LeakBlock()
    {
        if (Leak((UIntPtr)4096) != 0)
            throw new InvalidOperationException();
    }

    static readonly Callback called = CalledBack;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int CalledBack(int number)
    {
        LeakBlock();
        return number;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByDelegate(Action action)
    {
        action();
        GC.KeepAlive(action);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByException()
    {
        try
        {
            throw new InvalidOperationException();
        }
        catch (InvalidOperationException)
        {
            LeakBlock();
        }
        finally
        {
            LeakBlock();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void OneRound()
    {
        LeakBlock();
        new Circle().Draw("scale");
        ByDelegate(() => LeakBlock());
        ByException();
        Call(called, 1);
    }

    static void Rounds(int count)
    {
        for (int i = 0; i < count; i++)
            OneRound();
    }

    static void Main(string[] arguments)
    {
        int count = int.Parse(arguments[0]);

        Rounds(count);
        var thread = new Thread(() => Rounds(count));
        thread.Start();
        thread.Join();
    }
}
