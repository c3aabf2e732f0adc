/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to values and back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf_priv.h"
#include "holdfast/err.h"

struct suffix {
    const char *text;
    uint64_t factor;
};

/* digits, then one of the suffixes or nothing (factor 1). */
static bool parse_scaled(const char *s, const struct suffix *suffixes, size_t n, uint64_t *ret)
{
    uint64_t v = 0;
    uint64_t factor = 1;
    const char *digits = s;

    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(*s - '0'), &v))
            return false;
    if (s == digits)
        return false;
    if (*s) {
        size_t i = 0;

        while (i < n && strcasecmp(s, suffixes[i].text) != 0)
            i++;
        if (i == n)
            return false;
        factor = suffixes[i].factor;
    }
    return !__builtin_mul_overflow(v, factor, ret);
}

int hf_parse_size(const char *s, uint64_t *ret)
{
    static const struct suffix suffixes[] = {
        {"K", 1ull << 10}, {"M", 1ull << 20}, {"G", 1ull << 30}, {"T", 1ull << 40}};
    uint64_t v;

    if (!parse_scaled(s, suffixes, sizeof(suffixes) / sizeof(suffixes[0]), &v))
        return HF_E_INVAL;
    *ret = v;
    return 0;
}

static int parse_ms(const char *s, uint64_t *ret)
{
    static const struct suffix suffixes[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};

    return parse_scaled(s, suffixes, sizeof(suffixes) / sizeof(suffixes[0]), ret) ? 0 : HF_E_INVAL;
}

bool conf_parse_bool(const char *s, bool *ret)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(s, words[i]) == 0) {
            *ret = i % 2 == 1;
            return true;
        }
    }
    return false;
}

/* The table says 0 for "no limit". */
static uint64_t key_max(const struct hf_conf_key *k)
{
    if (k->max > 0)
        return k->max;
    if (k->kind == HF_CONF_STR)
        return CONF_STR_MAX;
    return k->kind == HF_CONF_LIST ? CONF_LIST_MAX : UINT64_MAX;
}

static bool in_range(const struct hf_conf_key *k, uint64_t v)
{
    return v >= k->min && v <= key_max(k);
}

void conf_allowed(const struct hf_conf_key *k, char *buf, size_t bytes)
{
    static const char *const what[] = {
        [HF_CONF_STR] = "text of a length",
        [HF_CONF_U64] = "a number (suffixes K, M, G, T)",
        [HF_CONF_MS] = "a time (suffixes ms, s, m, h) in milliseconds",
        [HF_CONF_LIST] = "a list of texts, its length",
    };

    if (k->kind == HF_CONF_BOOL)
        (void)snprintf(buf, bytes, "true or false");
    else if (key_max(k) == UINT64_MAX)
        (void)snprintf(buf, bytes, "%s from %" PRIu64, what[k->kind], k->min);
    else
        (void)snprintf(buf, bytes, "%s from %" PRIu64 " to %" PRIu64, what[k->kind], k->min,
                       key_max(k));
}

static int fail_value(struct hf_conf *c, size_t i, const char *text, const char *where)
{
    char path[CONF_NAME_BYTES];
    char allowed[128];

    conf_key_name(&c->keys[i], CONF_NAME_PATH, path);
    conf_allowed(&c->keys[i], allowed, sizeof(allowed));
    return conf_fail(c, "%s: %s: \"%.64s\" is not valid; allowed: %s", where, path, text, allowed);
}

static void list_clear(struct hf_conf_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct hf_conf_list){0};
}

void conf_entry_clear(struct conf_entry *e)
{
    free(e->str);
    e->str = NULL;
    list_clear(&e->list);
}

/* The target's field may be anywhere: memcpy needs no alignment and no cast. */
static void target_put(struct hf_conf *c, size_t i, const void *value, size_t bytes)
{
    memcpy((char *)c->target + c->keys[i].offset, value, bytes);
}

static int set_str(struct hf_conf *c, size_t i, const char *text, const char *where)
{
    struct conf_entry *e = &c->entries[i];
    char *copy;

    if (!in_range(&c->keys[i], strlen(text)))
        return fail_value(c, i, text, where);
    copy = strdup(text);
    if (!copy)
        return HF_E_NOMEM;
    free(e->str);
    e->str = copy;
    target_put(c, i, &copy, sizeof(copy));
    return 0;
}

static void note_where(struct hf_conf *c, size_t i, const char *where)
{
    (void)snprintf(c->entries[i].where, sizeof(c->entries[i].where), "%s", where);
}

const char *hf_conf_where(const struct hf_conf *c, const char *section, const char *key)
{
    for (size_t i = 0; i < c->nkeys; i++)
        if (strcmp(c->keys[i].section, section) == 0 && strcmp(c->keys[i].key, key) == 0)
            return c->entries[i].where;
    return "";
}

int conf_set_items(struct hf_conf *c, size_t i, char *const *items, size_t n, const char *where)
{
    struct conf_entry *e = &c->entries[i];
    struct hf_conf_list list = {0};
    int rc = HF_E_NOMEM;

    note_where(c, i, where);
    if (!in_range(&c->keys[i], n)) {
        char count[32];

        (void)snprintf(count, sizeof(count), "%zu items", n);
        return fail_value(c, i, count, where);
    }
    list.items = calloc(n ? n : 1, sizeof(*list.items));
    if (!list.items)
        return HF_E_NOMEM;
    for (; list.n < n; list.n++) {
        size_t len = strlen(items[list.n]);

        if (len == 0 || len > CONF_STR_MAX) {
            rc = conf_fail(c, "%s: %s%s%s: item %zu is empty or longer than %u bytes", where,
                           c->keys[i].section, c->keys[i].section[0] ? "." : "", c->keys[i].key,
                           list.n + 1, CONF_STR_MAX);
            goto fail;
        }
        list.items[list.n] = strdup(items[list.n]);
        if (!list.items[list.n])
            goto fail;
    }
    list_clear(&e->list);
    e->list = list;
    target_put(c, i, &list, sizeof(list));
    return 0;
fail:
    list_clear(&list);
    return rc;
}

/* "a, b,c": blanks around items do not count, an empty text is an empty list. */
static int set_list_text(struct hf_conf *c, size_t i, const char *text, const char *where)
{
    char *copy = strdup(text);
    char **items = calloc(strlen(text) + 1, sizeof(*items));
    size_t n = 0;
    int rc = HF_E_NOMEM;

    if (copy && items) {
        char *rest = copy;

        while (*text && rest) {
            char *item = strsep(&rest, ",");
            size_t len;

            item += strspn(item, " \t");
            len = strlen(item);
            while (len > 0 && (item[len - 1] == ' ' || item[len - 1] == '\t'))
                item[--len] = '\0';
            items[n++] = item;
        }
        rc = conf_set_items(c, i, items, n, where);
    }
    free(items);
    free(copy);
    return rc;
}

int conf_set_text(struct hf_conf *c, size_t i, const char *text, const char *where)
{
    const struct hf_conf_key *k = &c->keys[i];
    uint64_t v = 0;
    bool b = false;
    int rc = 0;

    note_where(c, i, where);
    switch (k->kind) {
    case HF_CONF_STR:
        return set_str(c, i, text, where);
    case HF_CONF_LIST:
        return set_list_text(c, i, text, where);
    case HF_CONF_BOOL:
        if (!conf_parse_bool(text, &b))
            return fail_value(c, i, text, where);
        target_put(c, i, &b, sizeof(b));
        return 0;
    case HF_CONF_U64:
        rc = hf_parse_size(text, &v);
        break;
    case HF_CONF_MS:
        rc = parse_ms(text, &v);
        break;
    }
    if (rc || !in_range(k, v))
        return fail_value(c, i, text, where);
    target_put(c, i, &v, sizeof(v));
    return 0;
}

int conf_get_text(const struct hf_conf *c, size_t i, struct hf_buf *out)
{
    const char *field = (const char *)c->target + c->keys[i].offset;
    uint64_t v;
    bool b;

    switch (c->keys[i].kind) {
    case HF_CONF_STR:
        return hf_buf_printf(out, "%s", c->entries[i].str ? c->entries[i].str : "");
    case HF_CONF_BOOL:
        memcpy(&b, field, sizeof(b));
        return hf_buf_printf(out, "%s", b ? "true" : "false");
    case HF_CONF_U64:
        memcpy(&v, field, sizeof(v));
        return hf_buf_printf(out, "%" PRIu64, v);
    case HF_CONF_MS:
        memcpy(&v, field, sizeof(v));
        return hf_buf_printf(out, "%" PRIu64 "ms", v);
    case HF_CONF_LIST:
        break;
    }
    return HF_E_INVAL;
}
