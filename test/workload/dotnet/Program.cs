// SPDX-License-Identifier: LGPL-2.1-or-later
// Main calls MyTest, for which a native library maps 256 blocks of 4 MiB that are never unmapped.
using System;
using System.ComponentModel;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace MyConsoleApp;

internal static class Program
{
    private const int Blocks = 256;
    private const int BlockBytes = 4 << 20;

    // SetLastError makes the runtime generate an IL stub for the call.
    [DllImport("Example", EntryPoint = "mmap_allocation", SetLastError = true)]
    private static extern int MmapAllocation(nuint bytes);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void MyTest()
    {
        for (int i = 0; i < Blocks; i++)
        {
            if (MmapAllocation(BlockBytes) != 0)
                throw new Win32Exception(Marshal.GetLastPInvokeError());
        }
    }

    private static void Main(string[] arguments)
    {
        Console.WriteLine("ready");
        Console.ReadLine();
        MyTest();
        Console.WriteLine("done");
        Console.ReadLine();
    }
}
