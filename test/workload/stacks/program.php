<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks so large that the allocator maps them, from functions, methods, closures, generators and callbacks of the
// library: program.php ROUNDS [wait]
const BLOCK = 4 << 20;
$kept = [];

function leak_string(): int
{
	global $kept;
	$kept[] = str_repeat('x', BLOCK);
	return count($kept);
}

class Circle
{
	public function draw(float $scale): float
	{
		return leak_string() * $scale;
	}
}

function by_closure(callable $action): int
{
	return $action() + 1;
}

function generate(): iterable
{
	yield leak_string();
}

function one_round(): float
{
	$sum = (new Circle())->draw(1.5) + by_closure(fn () => leak_string());
	foreach (generate() as $number)
		$sum += $number;
	return $sum + array_sum(array_map(fn ($number) => leak_string() + $number, [1]));
}

function wait(string $word): void
{
	global $argv;
	if (count($argv) > 2) {
		echo "$word\n";
		fgets(STDIN);
	}
}

wait('ready');
for ($i = 0; $i < (int)$argv[1]; $i++)
	one_round();
wait('done');
