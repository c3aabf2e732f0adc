/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_priv.h"
#include "holdfast/err.h"

int conf_fail(struct hf_conf *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->err, c->err_bytes, fmt, ap);
    va_end(ap);
    for (char *p = c->err; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return HF_E_CONF;
}

static bool word_ok(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return n <= CONF_WORD_MAX && s[n] == '\0';
}

/* Mistakes of the table are the programmer's, but they are cheap to find before they confuse a
 * user. */
static bool table_ok(const struct hf_conf_key *keys, size_t nkeys)
{
    for (size_t i = 0; i < nkeys; i++) {
        char name[CONF_NAME_BYTES];

        if (!word_ok(keys[i].section) || !word_ok(keys[i].key) || !keys[i].key[0])
            return false;
        conf_key_name(&keys[i], CONF_NAME_FLAG, name);
        if (strcmp(name, "--help") == 0 || strcmp(name, "--config") == 0)
            return false;
        for (size_t j = 0; j < i; j++) {
            char other[CONF_NAME_BYTES];

            conf_key_name(&keys[j], CONF_NAME_FLAG, other);
            if (strcmp(name, other) == 0)
                return false;
        }
    }
    return true;
}

int hf_conf_new(const struct hf_conf_key *keys, size_t nkeys, void *target, struct hf_conf **ret)
{
    struct hf_conf *c;
    int rc = HF_E_NOMEM;

    if (nkeys == 0 || !table_ok(keys, nkeys))
        return HF_E_INVAL;
    c = calloc(1, sizeof(*c));
    if (!c)
        return HF_E_NOMEM;
    c->keys = keys;
    c->nkeys = nkeys;
    c->target = target;
    c->entries = calloc(nkeys, sizeof(*c->entries));
    if (!c->entries)
        goto fail;
    rc = conf_schema_build(c);
    if (rc)
        goto fail;
    *ret = c;
    return 0;
fail:
    hf_conf_free(c);
    return rc;
}

void hf_conf_free(struct hf_conf *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->entries && i < c->nkeys; i++)
        conf_entry_clear(&c->entries[i]);
    conf_schema_free(c);
    free(c->entries);
    free(c);
}

static int apply_defaults(struct hf_conf *c)
{
    int rc = 0;

    for (size_t i = 0; i < c->nkeys && rc == 0; i++) {
        char path[CONF_NAME_BYTES];
        char flag[CONF_NAME_BYTES];
        char env[CONF_NAME_BYTES];
        const struct hf_conf_key *k = &c->keys[i];
        bool empty = !k->def || !*k->def;

        if (c->entries[i].set)
            continue;
        conf_key_name(k, CONF_NAME_PATH, path);
        conf_key_name(k, CONF_NAME_FLAG, flag);
        conf_key_name(k, CONF_NAME_ENV, env);
        if (empty && k->min > 0 && (k->kind == HF_CONF_STR || k->kind == HF_CONF_LIST))
            return conf_fail(c, "%s: must be set (in the file, by %s or by %s)", path, flag, env);
        if (!empty || k->kind == HF_CONF_STR || k->kind == HF_CONF_LIST)
            rc = conf_set_text(c, i, k->def ? k->def : "", "default");
    }
    return rc;
}

int hf_conf_load(struct hf_conf *c, const char *file, char *const *envp, int argc, char **argv,
                 int *ret_next, char *err, size_t err_bytes)
{
    int next = argc;
    int rc;

    c->err = err;
    c->err_bytes = err_bytes;
    err[0] = '\0';
    for (size_t i = 0; i < c->nkeys; i++) {
        c->entries[i].set = false;
        c->entries[i].line = 0;
        c->entries[i].flag_text = NULL;
    }
    rc = conf_scan_flags(c, argc, argv, &next, &file);
    if (rc == 0 && file)
        rc = conf_apply_file(c, file);
    if (rc == 0 && envp)
        rc = conf_apply_env(c, envp);
    if (rc == 0)
        rc = conf_apply_flags(c);
    if (rc == 0)
        rc = apply_defaults(c);
    if (rc == HF_E_NOMEM)
        (void)conf_fail(c, "out of memory");
    c->err = NULL;
    if (rc == 0 && ret_next)
        *ret_next = next;
    return rc;
}
