/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration file.
 *
 * libcyaml checks it against the schema and yields the values. What it does not tell is the line of
 * an unknown key or of a value that our own conversion refuses. So the file is walked once with
 * libyaml's event parser first, which only notes on which line each key stands. That walk also
 * refuses what no configuration needs and what would cost a lot later: broken YAML, several
 * documents, deep nesting.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "conf_priv.h"
#include "holdfast/err.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define DEPTH_MAX      3u /* top, section, list */

struct walk {
    struct hf_conf *c;
    const char *file;
    unsigned depth;
    unsigned documents;
    struct {
        bool is_map;
        bool key_next;
    } level[DEPTH_MAX + 1];
    size_t section; /* of the keys at depth 2; nsections = unknown or none */
    unsigned unknown_line, twice_line;
    char unknown[CONF_WORD_MAX * 2 + 2], twice[CONF_WORD_MAX * 2 + 2];
    size_t unknown_section; /* nsections = it is a section that is unknown */
};

/* What libcyaml reported, see on_cyaml_log. */
struct report {
    char text[128];
    char path[CONF_WORD_MAX * 2 + 2];
    unsigned line;
};

static int read_file(struct hf_conf *c, const char *file, struct hf_buf *out)
{
    FILE *f = fopen(file, "rbe");
    size_t n = 1;
    int rc = 0;

    if (!f)
        return conf_fail(c, "%s: %s", file, hf_err_text(hf_err_from_errno(errno)));
    while (rc == 0 && n > 0 && out->len <= FILE_MAX_BYTES) {
        rc = hf_buf_reserve(out, 4096);
        if (rc == 0) {
            n = fread(out->data + out->len, 1, 4096, f);
            out->len += n;
        }
    }
    if (rc == 0 && ferror(f))
        rc = conf_fail(c, "%s: %s", file, hf_err_text(hf_err_from_errno(errno)));
    else if (rc == 0 && out->len > FILE_MAX_BYTES)
        rc = conf_fail(c, "%s: larger than %zu bytes", file, FILE_MAX_BYTES);
    (void)fclose(f);
    return rc;
}

/* ---- the walk that notes lines ---- */

static void note_key(struct walk *w, const char *name, size_t len, unsigned line)
{
    struct hf_conf *c = w->c;
    size_t section = w->depth == 1 ? 0 : w->section;
    size_t i = conf_key_find(c, section, name, len);
    int shown = len < CONF_WORD_MAX ? (int)len : (int)CONF_WORD_MAX;
    const char *prefix = w->depth == 1 ? "" : c->sections[section].name;

    if (w->depth == 1)
        w->section = i == c->nkeys && len > 0 ? conf_section_find(c, name, len) : c->nsections;
    if (i < c->nkeys) {
        if (c->entries[i].line > 0 && w->twice_line == 0) {
            w->twice_line = line;
            (void)snprintf(w->twice, sizeof(w->twice), "%s%s%.*s", prefix, *prefix ? "." : "",
                           shown, name);
        }
        c->entries[i].line = line;
    } else if (w->unknown_line == 0 && (w->depth == 2 || w->section == c->nsections)) {
        w->unknown_line = line;
        w->unknown_section = section;
        (void)snprintf(w->unknown, sizeof(w->unknown), "%s%s%.*s", prefix, *prefix ? "." : "",
                       shown, name);
    }
}

static int walk_node(struct walk *w, const yaml_event_t *e)
{
    unsigned line = (unsigned)e->start_mark.line + 1;
    bool is_scalar = e->type == YAML_SCALAR_EVENT;

    if (w->depth > 0 && w->level[w->depth].is_map) {
        if (w->level[w->depth].key_next && is_scalar &&
            (w->depth == 1 || (w->depth == 2 && w->section < w->c->nsections)))
            note_key(w, (const char *)e->data.scalar.value, e->data.scalar.length, line);
        w->level[w->depth].key_next = !w->level[w->depth].key_next;
    }
    if (is_scalar || e->type == YAML_ALIAS_EVENT)
        return 0;
    if (w->depth == DEPTH_MAX)
        return conf_fail(w->c, "%s:%u: nested too deeply", w->file, line);
    w->depth++;
    w->level[w->depth].is_map = e->type == YAML_MAPPING_START_EVENT;
    w->level[w->depth].key_next = true;
    return 0;
}

static int walk_event(struct walk *w, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (w->documents++ > 0)
            return conf_fail(w->c, "%s:%zu: a second document", w->file, e->start_mark.line + 1);
        return 0;
    case YAML_SCALAR_EVENT:
    case YAML_ALIAS_EVENT:
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return walk_node(w, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        w->depth--;
        return 0;
    default:
        return 0;
    }
}

static int walk_file(struct walk *w, const struct hf_buf *yaml)
{
    yaml_parser_t parser;
    bool end = false;
    int rc = 0;

    if (!yaml_parser_initialize(&parser))
        return HF_E_NOMEM;
    yaml_parser_set_input_string(&parser, yaml->data, yaml->len);
    while (!end && rc == 0) {
        yaml_event_t e;

        if (!yaml_parser_parse(&parser, &e)) {
            rc = conf_fail(w->c, "%s:%zu: not YAML: %s", w->file, parser.problem_mark.line + 1,
                           parser.problem ? parser.problem : "out of memory");
            break;
        }
        end = e.type == YAML_STREAM_END_EVENT;
        rc = walk_event(w, &e);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    return rc;
}

/* ---- libcyaml ---- */

/* libcyaml says what is wrong in its first line and where in a backtrace, innermost field first:
 * "in mapping field 'listen' (line: 2, column: 6)". */
static void on_cyaml_log(cyaml_log_t level, void *ctx, const char *fmt, va_list ap)
{
    struct report *r = ctx;
    char text[256];
    const char *field;
    const char *line;

    if (level < CYAML_LOG_ERROR)
        return;
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    line = strstr(text, "(line: ");
    field = strstr(text, "in mapping field '");
    if (line && r->line == 0)
        r->line = (unsigned)strtoul(line + 7, NULL, 10);
    if (field) {
        char outer[2 * sizeof(r->path)];
        size_t len = strcspn(field + 18, "'");

        (void)snprintf(outer, sizeof(outer), "%.*s%s%s",
                       len < CONF_WORD_MAX ? (int)len : (int)CONF_WORD_MAX, field + 18,
                       r->path[0] ? "." : "", r->path);
        if (strlen(outer) < sizeof(r->path))
            memcpy(r->path, outer, strlen(outer) + 1);
    } else if (!r->text[0]) {
        const char *what = strncmp(text, "Load: ", 6) == 0 ? text + 6 : text;

        (void)snprintf(r->text, sizeof(r->text), "%.*s", (int)sizeof(r->text) - 1, what);
    }
}

/* "a, b, c", as far as there is room. */
static void list_allowed(const struct hf_conf *c, size_t section, char *buf, size_t bytes)
{
    size_t n = 0;
    const struct cyaml_schema_field *f = c->sections[section].fields;

    buf[0] = '\0';
    for (; f->key && n < bytes; f++) {
        int m = snprintf(buf + n, bytes - n, "%s%s", n ? ", " : "", f->key);

        n += m > 0 ? (size_t)m : 0;
    }
}

static int fail_schema(const struct walk *w, cyaml_err_t cerr, const struct report *r)
{
    struct hf_conf *c = w->c;
    char allowed[256];

    if (cerr == CYAML_ERR_OOM)
        return HF_E_NOMEM;
    if (cerr == CYAML_ERR_INVALID_KEY && w->unknown_line > 0) {
        list_allowed(c, w->unknown_section, allowed, sizeof(allowed));
        return conf_fail(c, "%s:%u: %s: unknown key; allowed: %s", w->file, w->unknown_line,
                         w->unknown, allowed);
    }
    if (cerr == CYAML_ERR_UNEXPECTED_EVENT && w->twice_line > 0)
        return conf_fail(c, "%s:%u: %s: given twice", w->file, w->twice_line, w->twice);
    for (size_t i = 0; i < c->nkeys; i++) {
        char path[CONF_NAME_BYTES];

        conf_key_name(&c->keys[i], CONF_NAME_PATH, path);
        if (strcmp(path, r->path) != 0)
            continue;
        conf_allowed(&c->keys[i], allowed, sizeof(allowed));
        return conf_fail(c, "%s:%u: %s: %s; allowed: %s", w->file, c->entries[i].line, path,
                         r->text[0] ? r->text : cyaml_strerror(cerr), allowed);
    }
    return conf_fail(c, "%s:%u: %s%s%s", w->file, r->line ? r->line : 1, r->path,
                     r->path[0] ? ": " : "", r->text[0] ? r->text : cyaml_strerror(cerr));
}

static int apply_values(struct hf_conf *c, const char *file, void *top)
{
    for (size_t i = 0; i < c->nkeys; i++) {
        struct conf_slot *slot = conf_slot_of(c, top, i);
        char where[CONF_WHERE_BYTES];
        int rc;

        /* The walk saw the key, so that "list: []" is not mistaken for an absent list. */
        if (!slot || c->entries[i].line == 0)
            continue;
        (void)snprintf(where, sizeof(where), "%s:%u", file, c->entries[i].line);
        if (c->keys[i].kind == HF_CONF_LIST)
            rc = conf_set_items(c, i, slot->items, slot->n, where);
        else
            rc = conf_set_text(c, i, slot->text ? slot->text : "", where);
        if (rc)
            return rc;
        c->entries[i].set = true;
    }
    return 0;
}

int conf_apply_file(struct hf_conf *c, const char *file)
{
    struct walk w = {.c = c, .file = file, .section = c->nsections};
    struct report report = {0};
    const cyaml_config_t cfg = {.log_fn = on_cyaml_log,
                                .log_ctx = &report,
                                .log_level = CYAML_LOG_ERROR,
                                .mem_fn = cyaml_mem,
                                .flags = CYAML_CFG_NO_ALIAS};
    struct hf_buf yaml = {0};
    void *top = NULL;
    int rc = read_file(c, file, &yaml);

    if (rc == 0)
        rc = walk_file(&w, &yaml);
    if (rc == 0) {
        cyaml_err_t cerr = cyaml_load_data(yaml.data, yaml.len, &cfg, &c->top, &top, NULL);

        if (cerr != CYAML_OK)
            rc = fail_schema(&w, cerr, &report);
        else if (top) /* NULL: an empty file */
            rc = apply_values(c, file, top);
    }
    if (top)
        (void)cyaml_free(&cfg, &c->top, top, 0);
    hf_buf_fini(&yaml);
    return rc;
}
