// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory of Java outside or inside its heap: Grow direct|heap. Waits for a line, grows up to its limit, waits for another.
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

class Grow {
	static final List<Object> kept = new ArrayList<>();

	static void keepDirect(int bytes) {
		ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
		for (int i = 0; i < bytes; i += 4096)
			buffer.put(i, (byte) 1);
		kept.add(buffer);
	}

	public static void main(String[] arguments) throws Exception {
		System.out.println("ready");
		System.in.read();
		try {
			for (int i = 0; i < 64; i++) {
				if (arguments[0].equals("direct"))
					keepDirect(1 << 20);
				else
					kept.add(new byte[1 << 20]);
			}
		} catch (OutOfMemoryError limit) {
			kept.add(limit);
		}
		System.out.println("done");
		System.in.read();
	}
}
