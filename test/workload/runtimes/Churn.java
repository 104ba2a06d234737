// SPDX-License-Identifier: LGPL-2.1-or-later
// Threads that come and go, allocate on and off the managed heap and keep the compiler busy, until they are killed.
import java.nio.ByteBuffer;

class Churn {
	static volatile long result;

	static void work(int seed) {
		Object[] kept = new Object[64];
		for (int round = 0; round < 2000; round++) {
			long sum = seed;
			for (int i = 0; i < 5000; i++)
				sum = sum * 31 + i % (round + 1);
			kept[round % 64] = round % 3 == 0 ? ByteBuffer.allocateDirect(200000) : new long[30000];
			result = sum;
		}
	}

	public static void main(String[] arguments) throws InterruptedException {
		for (int seed = 0;; seed++) {
			int number = seed;
			Thread one = new Thread(() -> work(number)), other = new Thread(() -> work(-number));
			one.start();
			other.start();
			one.join();
			other.join();
		}
	}
}
