/* SPDX-License-Identifier: Apache-2.0
 *
 * The libcyaml schema made from a key table, and the way back: the effective configuration as YAML.
 */
#include <stdlib.h>
#include <string.h>

#include "conf_priv.h"
#include "holdfast/arena.h"
#include "holdfast/err.h"

/* Values are read as text and converted by conf_value.c, whose errors say more than libcyaml's. */
static const struct cyaml_schema_value item_schema = {
    .type = CYAML_STRING,
    .flags = CYAML_FLAG_POINTER,
    .data_size = sizeof(char *),
    .string = {.min = 0, .max = CYAML_UNLIMITED},
};

size_t conf_section_find(const struct hf_conf *c, const char *name, size_t len)
{
    size_t s = 0;

    while (s < c->nsections &&
           (strlen(c->sections[s].name) != len || memcmp(c->sections[s].name, name, len) != 0))
        s++;
    return s;
}

size_t conf_key_find(const struct hf_conf *c, size_t section, const char *name, size_t len)
{
    size_t i = 0;

    while (i < c->nkeys && (c->entries[i].section != section || strlen(c->keys[i].key) != len ||
                            memcmp(c->keys[i].key, name, len) != 0))
        i++;
    return i;
}

static struct cyaml_schema_field key_field(const struct hf_conf_key *k, size_t pos)
{
    struct cyaml_schema_field f = {.key = k->key};
    size_t base = pos * sizeof(struct conf_slot);

    if (k->kind == HF_CONF_LIST) {
        f.data_offset = (uint32_t)(base + offsetof(struct conf_slot, items));
        f.count_offset = (uint32_t)(base + offsetof(struct conf_slot, n));
        f.count_size = sizeof(((struct conf_slot *)NULL)->n);
        f.value.type = CYAML_SEQUENCE;
        f.value.data_size = sizeof(char *);
        f.value.sequence.entry = &item_schema;
        f.value.sequence.max = CONF_LIST_MAX;
    } else {
        f.data_offset = (uint32_t)(base + offsetof(struct conf_slot, text));
        f.value = item_schema;
    }
    f.value.flags = (enum cyaml_flag)(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL);
    return f;
}

/* Finds the sections and gives each key its place. */
static int sections_make(struct hf_conf *c)
{
    c->sections = calloc(c->nkeys + 1, sizeof(*c->sections));
    if (!c->sections)
        return HF_E_NOMEM;
    c->sections[0].name = "";
    c->nsections = 1;
    for (size_t i = 0; i < c->nkeys; i++) {
        const char *name = c->keys[i].section;
        size_t s = conf_section_find(c, name, strlen(name));

        if (s == c->nsections)
            c->sections[c->nsections++].name = name;
        c->entries[i].section = s;
        c->entries[i].pos = c->sections[s].nkeys++;
    }
    return 0;
}

int conf_schema_build(struct hf_conf *c)
{
    size_t ntop;
    int rc = sections_make(c);

    if (rc)
        return rc;
    ntop = c->sections[0].nkeys;
    c->top_fields = calloc(ntop + c->nsections, sizeof(*c->top_fields));
    if (!c->top_fields)
        return HF_E_NOMEM;
    c->sections[0].fields = c->top_fields;
    for (size_t s = 1; s < c->nsections; s++) {
        struct cyaml_schema_field *f = &c->top_fields[ntop + s - 1];

        c->sections[s].fields = calloc(c->sections[s].nkeys + 1, sizeof(*f));
        if (!c->sections[s].fields)
            return HF_E_NOMEM;
        f->key = c->sections[s].name;
        f->data_offset = (uint32_t)(ntop * sizeof(struct conf_slot) + (s - 1) * sizeof(void *));
        f->value.type = CYAML_MAPPING;
        /* A section may be empty: what is left when all its lines are commented out. */
        f->value.flags = (enum cyaml_flag)(CYAML_FLAG_POINTER_NULL_STR | CYAML_FLAG_OPTIONAL);
        f->value.data_size = (uint32_t)(c->sections[s].nkeys * sizeof(struct conf_slot));
        f->value.mapping.fields = c->sections[s].fields;
    }
    for (size_t i = 0; i < c->nkeys; i++)
        c->sections[c->entries[i].section].fields[c->entries[i].pos] =
            key_field(&c->keys[i], c->entries[i].pos);
    c->top = (struct cyaml_schema_value){.type = CYAML_MAPPING,
                                         .flags = CYAML_FLAG_POINTER,
                                         .data_size = (uint32_t)conf_top_bytes(c),
                                         .mapping = {.fields = c->top_fields}};
    return 0;
}

void conf_schema_free(struct hf_conf *c)
{
    for (size_t s = 1; c->sections && s < c->nsections; s++)
        free(c->sections[s].fields);
    free(c->top_fields);
    free(c->sections);
}

size_t conf_top_bytes(const struct hf_conf *c)
{
    return c->sections[0].nkeys * sizeof(struct conf_slot) + (c->nsections - 1) * sizeof(void *);
}

struct conf_slot **conf_section_ptr(const struct hf_conf *c, void *top, size_t section)
{
    struct conf_slot *slots = top;

    return (struct conf_slot **)(void *)(slots + c->sections[0].nkeys) + (section - 1);
}

struct conf_slot *conf_slot_of(const struct hf_conf *c, void *top, size_t i)
{
    const struct conf_entry *e = &c->entries[i];
    struct conf_slot *slots = e->section == 0 ? top : *conf_section_ptr(c, top, e->section);

    return slots ? slots + e->pos : NULL;
}

/* Puts every value in libcyaml's struct, all memory from the arena. */
static int dump_fill(const struct hf_conf *c, struct hf_arena *a, void *top)
{
    struct hf_buf text = {0};
    int rc = 0;

    for (size_t s = 1; s < c->nsections; s++) {
        *conf_section_ptr(c, top, s) =
            hf_arena_zalloc(a, c->sections[s].nkeys * sizeof(struct conf_slot));
        if (!*conf_section_ptr(c, top, s))
            return HF_E_NOMEM;
    }
    for (size_t i = 0; i < c->nkeys && rc == 0; i++) {
        struct conf_slot *slot = conf_slot_of(c, top, i);

        if (c->keys[i].kind == HF_CONF_LIST) {
            /* Not NULL: an empty list is said, not left out. */
            slot->items = c->entries[i].list.items ? c->entries[i].list.items
                                                   : hf_arena_zalloc(a, sizeof(char *));
            slot->n = (uint32_t)c->entries[i].list.n;
            if (!slot->items)
                rc = HF_E_NOMEM;
            continue;
        }
        hf_buf_reset(&text);
        rc = conf_get_text(c, i, &text);
        if (rc == 0)
            rc = hf_buf_append(&text, "", 1);
        if (rc == 0 && !(slot->text = hf_arena_dup(a, text.data, text.len)))
            rc = HF_E_NOMEM;
    }
    hf_buf_fini(&text);
    return rc;
}

int hf_conf_dump(const struct hf_conf *c, struct hf_buf *out)
{
    const cyaml_config_t cfg = {
        .log_level = CYAML_LOG_ERROR, .mem_fn = cyaml_mem, .flags = CYAML_CFG_STYLE_BLOCK};
    struct hf_arena arena;
    void *top;
    char *yaml = NULL;
    size_t len = 0;
    int rc;

    hf_arena_init(&arena, 0);
    top = hf_arena_zalloc(&arena, conf_top_bytes(c));
    rc = top ? dump_fill(c, &arena, top) : HF_E_NOMEM;
    if (rc == 0 && cyaml_save_data(&yaml, &len, &cfg, &c->top, top, 0) != CYAML_OK)
        rc = HF_E_NOMEM;
    if (rc == 0)
        rc = hf_buf_append(out, yaml, len);
    if (yaml)
        (void)cfg.mem_fn(NULL, yaml, 0);
    hf_arena_fini(&arena);
    return rc;
}
