/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive doubly linked list with a head. Not thread-safe.
 */
#ifndef HOLDFAST_LIST_H
#define HOLDFAST_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/assert.h"

struct hf_list {
    struct hf_list *next, *prev;
};

static inline void hf_list_init(struct hf_list *l)
{
    l->next = l->prev = l;
}
static inline bool hf_list_empty(const struct hf_list *l)
{
    return l->next == l;
}
static inline void hf_list_insert_(struct hf_list *n, struct hf_list *prev, struct hf_list *next)
{
    n->prev = prev;
    n->next = next;
    prev->next = n;
    next->prev = n;
}
static inline void hf_list_push_back(struct hf_list *head, struct hf_list *n)
{
    hf_list_insert_(n, head->prev, head);
}
static inline void hf_list_push_front(struct hf_list *head, struct hf_list *n)
{
    hf_list_insert_(n, head, head->next);
}
/* Leaves n initialised, so that removing twice is harmless. */
static inline void hf_list_remove(struct hf_list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    hf_list_init(n);
}
static inline struct hf_list *hf_list_pop_front(struct hf_list *head)
{
    struct hf_list *n = head->next;

    if (n == head)
        return NULL;
    /* Not hf_list_remove(): with `head` named, an analyzer sees that n is no longer in the list. */
    head->next = n->next;
    n->next->prev = head;
    hf_list_init(n);
    return n;
}

/* `it` and `tmp` are declared here: they cannot be put in parentheses.
 * NOLINTBEGIN(bugprone-macro-parentheses) */
#define HF_LIST_FOREACH(it, head)                                                                  \
    for (struct hf_list *it = (head)->next; it != (head); it = it->next)
#define HF_LIST_FOREACH_SAFE(it, tmp, head)                                                        \
    for (struct hf_list *it = (head)->next, *tmp = it->next; it != (head); it = tmp, tmp = it->next)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
