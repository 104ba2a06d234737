// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks mapped by native code that Java calls: from interpreted and compiled methods, lambdas, interfaces, reflection,
// constructors, catch blocks and threads; and by the runtime for direct buffers. Program ROUNDS
import java.lang.reflect.Method;
import java.util.function.IntConsumer;

class Program {
	static final int BLOCK = 4096;
	static volatile int kept;

	static native int leak(long bytes);

	static void leakBlock() {
		if (leak(BLOCK) != 0)
			throw new IllegalStateException();
	}

	interface Shape {
		void draw(double scale);
	}

	static class Circle implements Shape {
		public void draw(double scale) {
			leakBlock();
			kept++;
		}
	}

	static class LeaksWhenMade {
		LeaksWhenMade() {
			leakBlock();
			kept++;
		}
	}

	static void byInterface(Shape shape) {
		shape.draw(1.5);
		kept++;
	}

	static void byLambda(IntConsumer consumer) {
		consumer.accept(1);
		kept++;
	}

	static void byConstructor() {
		new LeaksWhenMade();
		kept++;
	}

	public static void reflected() {
		leakBlock();
		kept++;
	}

	static void byReflection(Method method) throws Exception {
		method.invoke(null);
		kept++;
	}

	static void byException() {
		try {
			throw new IllegalStateException();
		} catch (IllegalStateException exception) {
			leakBlock();
		} finally {
			leakBlock();
		}
		kept++;
	}

	static void byRecursion(int depth) {
		if (depth == 0)
			leakBlock();
		else
			byRecursion(depth - 1);
		kept++;
	}

	static void oneRound(Shape shape, Method method) throws Exception {
		byInterface(shape);
		byLambda(number -> {
			leakBlock();
			kept++;
		});
		byConstructor();
		byReflection(method);
		byException();
		byRecursion(4);
	}

	static void rounds(int count) throws Exception {
		Method method = Program.class.getMethod("reflected");
		Shape shape = new Circle();

		for (int i = 0; i < count; i++)
			oneRound(shape, method);
	}

	static void await(String word) throws Exception {
		System.out.println(word);
		System.in.read();
	}

	public static void main(String[] arguments) throws Exception {
		int count = Integer.parseInt(arguments[0]);
		boolean waits = arguments.length > 1;

		System.loadLibrary("native");
		if (waits)
			await("ready");
		rounds(count);
		Thread thread = new Thread(() -> {
			try {
				rounds(count);
			} catch (Exception exception) {
				throw new RuntimeException(exception);
			}
		});
		thread.start();
		thread.join();
		if (waits)
			await("done");
	}
}
