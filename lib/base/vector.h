/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that grows: vectors and arenas. Zero initialisation makes empty ones.
 *
 * A vector is an array of any element type: `VECTOR(struct frame) frames = {0};`. Element pointers are valid until the
 * next append. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

#define VECTOR(type)                                                                                                   \
	struct {                                                                                                       \
		type *items;                                                                                           \
		size_t count;                                                                                          \
		size_t capacity;                                                                                       \
	}

/* Pointer to a new zeroed last element, or NULL when out of memory. */
#define vector_append(vector)                                                                                          \
	(vector_has_room(vector)                                                                                       \
	     ? (__typeof__((vector)->items))memset(&(vector)->items[(vector)->count++], 0, sizeof(*(vector)->items))   \
	     : NULL)

/* Append a copy of `value`, or of each item; false when out of memory. */
#define vector_push_all(vector, items, count) (!array_find(item_, items, count, !vector_push(vector, *item_)))
#define vector_push(vector, value)                                                                                     \
	(vector_has_room(vector) ? ((vector)->items[(vector)->count++] = (value), true) : false)

/* Append zeroed elements until there are at least `wanted`; false when out of memory. */
#define vector_extend(vector, wanted)                                                                                  \
	({                                                                                                             \
		while ((vector)->count < (wanted) && vector_append(vector))                                            \
			;                                                                                              \
		(vector)->count >= (wanted);                                                                           \
	})

#define vector_deinit(vector)                                                                                          \
	do {                                                                                                           \
		free((vector)->items);                                                                                 \
		(vector)->items = NULL;                                                                                \
		(vector)->count = (vector)->capacity = 0;                                                              \
	} while (0)

/* Releases what the elements own, each of which `item` points to, and then the vector. */
#define vector_deinit_each(vector, item, release)                                                                      \
	do {                                                                                                           \
		array_each(item, (vector)->items, (vector)->count)                                                     \
			release;                                                                                       \
		vector_deinit(vector);                                                                                 \
	} while (0)

/* Loop over an array, which may be NULL if it is empty; `item` points to each element. */
#define array_each(item, items, count) array_while(item, items, count, true)

/* The same while the condition holds, which is asked before each element. */
#define array_while(item, items, count, condition)                                                                     \
	for (__typeof__(*(items)) *item = (items), *item##_end = item ? item + (count) : item;                         \
	     item != item##_end && (condition); item++)

/* The first element for which the condition holds, to which `item` points in it; NULL: none. */
#define array_find(item, items, count, condition)                                                                      \
	({                                                                                                             \
		__typeof__(*(items)) *found_ = NULL;                                                                   \
                                                                                                                       \
		array_each(item, items, count) {                                                                       \
			if (condition) {                                                                               \
				found_ = item;                                                                         \
				break;                                                                                 \
			}                                                                                              \
		}                                                                                                      \
		found_;                                                                                                \
	})

/* For CLEANUP(vector): the pointer to the items is the first member. */
#define cleanup_vector cleanup_free

/* As qsort(). */
#define vector_sort(vector, compare)                                                                                   \
	do {                                                                                                           \
		if ((vector)->count)                                                                                   \
			qsort((vector)->items, (vector)->count, sizeof(*(vector)->items), compare);                    \
	} while (0)

/* For comparisons: less than, equal to or greater than 0. Joined with `?:`, the first difference decides. */
#define order_of(left, right) (((left) > (right)) - ((left) < (right)))

/* Without side effects: one of the two is evaluated twice. */
#define smaller_of(left, right) ((left) < (right) ? (left) : (right))
#define larger_of(left, right) ((left) > (right) ? (left) : (right))

/* A sum of at most `maximum`. */
static inline uint64_t saturating_add(uint64_t left, uint64_t right, uint64_t maximum)
{
	uint64_t sum;

	return __builtin_add_overflow(left, right, &sum) || sum > maximum ? maximum : sum;
}

/* A difference that is not below 0. */
static inline uint64_t subtract(uint64_t left, uint64_t right)
{
	return left > right ? left - right : 0;
}

/* The size of a change. */
static inline uint64_t magnitude_of(int64_t change)
{
	return change < 0 ? -(uint64_t)change : (uint64_t)change;
}

/* Defines a comparison for qsort(), where `order` compares what `a` and `b` point to. */
#define COMPARISON(name, type, order)                                                                                  \
	static int name(const void *left, const void *right)                                                           \
	{                                                                                                              \
		const __typeof__(type) *a = left, *b = right;                                                          \
                                                                                                                       \
		return order;                                                                                          \
	}

/* The same for qsort_r(), whose context `with` points to. */
#define COMPARISON_WITH(name, type, context, order)                                                                    \
	static int name(const void *left, const void *right, void *with_)                                              \
	{                                                                                                              \
		const __typeof__(type) *a = left, *b = right;                                                          \
		const __typeof__(context) *with = with_;                                                               \
                                                                                                                       \
		return order;                                                                                          \
	}

/* Helpers of the macros. The capacity check is inline because an append rarely has to reallocate. */
#define vector_has_room(vector)                                                                                        \
	((vector)->count < (vector)->capacity || vector_reserve_bytes((void **)&(vector)->items, &(vector)->capacity,  \
								      (vector)->count + 1, sizeof(*(vector)->items)))
bool vector_reserve_bytes(void **items, size_t *capacity, size_t needed, size_t element_size);

/* Binary search: how many of `count` sorted items, which are numbered `index` in `condition`, satisfy the condition. If
 * one does not, none after it does. */
#define partition_point(count, index, condition)                                                                       \
	({                                                                                                             \
		size_t low_ = 0, high_ = (count);                                                                      \
                                                                                                                       \
		while (low_ < high_) {                                                                                 \
			const size_t index = low_ + (high_ - low_) / 2;                                                \
                                                                                                                       \
			if (condition)                                                                                 \
				low_ = index + 1;                                                                      \
			else                                                                                           \
				high_ = index;                                                                         \
		}                                                                                                      \
		low_;                                                                                                  \
	})

/* An arena: all allocations are freed at once and stay valid until then. */
struct arena {
	struct arena_chunk *chunks;
};

/* Returns zeroed memory, aligned for an array of a type of this size; NULL when out of memory. */
void *arena_alloc(struct arena *arena, size_t count, size_t element_size);

/* NULL when out of memory. */
char *arena_string(struct arena *arena, const char *text);

void arena_deinit(struct arena *arena);
