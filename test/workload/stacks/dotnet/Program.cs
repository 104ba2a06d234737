// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks mapped through every kind of code that .NET generates: calls with and without an IL stub, callbacks from native
// code, delegates, reflection, generic virtual methods, exception filters and finally blocks, asynchronous methods,
// threads; first unoptimised, in later rounds optimised. Stacks ROUNDS [wait]: wait for a line before and after.
using System;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Stacks;

internal interface IShape
{
    void Draw<T>(T scale);
}

internal sealed class Circle : IShape
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public void Draw<T>(T scale)
    {
        Program.LeakByStub();
        GC.KeepAlive(scale);
        Program.KeepFrame();
    }
}

internal static class Program
{
    private const nuint BlockBytes = 4096;
    private const int LargeBlockBytes = 256 << 10;

    // SetLastError makes the runtime generate an IL stub for the call.
    [DllImport("native", EntryPoint = "native_leak", SetLastError = true)]
    private static extern int LeakWithLastError(nuint bytes);

    [DllImport("native", EntryPoint = "native_leak")]
    private static extern int Leak(nuint bytes);

    [DllImport("native", EntryPoint = "native_call")]
    private static extern unsafe int Call(delegate* unmanaged<int, int> callback, int number);

    // After a call whose frame must stay on the stack: keeps the compiler from turning the call into a jump.
    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void KeepFrame()
    {
    }

    private static void Need(int status)
    {
        if (status != 0)
            throw new InvalidOperationException("native code failed");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void LeakByStub() => Need(LeakWithLastError(BlockBytes));

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void LeakDirectly() => Need(Leak(BlockBytes));

    // So large that malloc maps it.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void LeakByMarshal()
    {
        Marshal.AllocHGlobal(LargeBlockBytes);
        KeepFrame();
    }

    [UnmanagedCallersOnly]
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int CalledBack(int number)
    {
        LeakByStub();
        return number;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static unsafe void ByCallback()
    {
        Call(&CalledBack, 1);
        KeepFrame();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void ByDelegate(Action action)
    {
        action();
        KeepFrame();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Reflected()
    {
        LeakByStub();
        KeepFrame();
    }

    private static readonly MethodInfo ReflectedMethod = typeof(Program).GetMethod(nameof(Reflected))!;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void ByReflection()
    {
        ReflectedMethod.Invoke(null, null);
        KeepFrame();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void ByVirtual(IShape shape)
    {
        shape.Draw("scale");
        KeepFrame();
    }

    private static bool Filter()
    {
        LeakByStub();
        KeepFrame();
        return true;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void ByException()
    {
        try
        {
            try
            {
                throw new InvalidOperationException();
            }
            finally
            {
                LeakByStub();
            }
        }
        catch (InvalidOperationException) when (Filter())
        {
            LeakByStub();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static async Task ByAsync()
    {
        LeakByStub();
        await Task.Yield();
        LeakByStub();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void OneRound()
    {
        LeakByStub();
        LeakDirectly();
        LeakByMarshal();
        ByCallback();
        ByDelegate(() =>
        {
            LeakByStub();
            KeepFrame();
        });
        ByReflection();
        ByVirtual(new Circle());
        ByException();
        ByAsync().Wait();
    }

    private static void Main(string[] arguments)
    {
        int rounds = arguments.Length > 0 ? int.Parse(arguments[0]) : 1;
        bool waits = arguments.Length > 1;

        if (waits)
            Wait("ready");
        for (int i = 0; i < rounds; i++)
        {
            OneRound();
            // Time for the tiers to replace what was compiled.
            if (i % 40 == 39)
                Thread.Sleep(150);
        }
        var thread = new Thread(OneRound);
        thread.Start();
        thread.Join();
        if (waits)
            Wait("done");
    }

    private static void Wait(string word)
    {
        Console.WriteLine(word);
        Console.OpenStandardInput().ReadByte();
    }
}
