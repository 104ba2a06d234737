// SPDX-License-Identifier: LGPL-2.1-or-later
// A .NET heap that grows. Waits for a line, grows, waits for another.
using System;
using System.Collections.Generic;

static class Grow {
	static readonly List<byte[]> kept = new();

	static void Keep() {
		for (int i = 0; i < 64; i++) {
			var block = new byte[1 << 20];
			for (int j = 0; j < block.Length; j += 4096)
				block[j] = 1;
			kept.Add(block);
		}
	}

	static void Main() {
		Console.WriteLine("ready");
		Console.ReadLine();
		Keep();
		Console.WriteLine("done");
		Console.ReadLine();
	}
}
