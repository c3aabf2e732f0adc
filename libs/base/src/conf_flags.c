/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of keys outside the file; flags, environment, help.
 */
#include <stdio.h>
#include <string.h>

#include "conf_priv.h"
#include "holdfast/err.h"

void conf_key_name(const struct hf_conf_key *k, enum conf_name kind, char buf[CONF_NAME_BYTES])
{
    static const struct {
        const char *prefix;
        char joint;
    } styles[] = {[CONF_NAME_PATH] = {"", '.'},
                  [CONF_NAME_FLAG] = {"--", '-'},
                  [CONF_NAME_ENV] = {"HOLDFAST_", '_'}};
    char joint[2] = {k->section[0] ? styles[kind].joint : '\0', '\0'};

    (void)snprintf(buf, CONF_NAME_BYTES, "%s%s%s%s", styles[kind].prefix, k->section, joint,
                   k->key);
    for (char *p = buf; *p; p++) {
        if (kind == CONF_NAME_FLAG && *p == '_')
            *p = '-';
        if (kind == CONF_NAME_ENV && *p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    }
}

/* The key of a flag word "--name" or "--name=value", or nkeys; *ret_value past the '=', or NULL. */
static size_t flag_find(const struct hf_conf *c, const char *word, const char **ret_value)
{
    const char *eq = strchrnul(word, '=');
    size_t len = (size_t)(eq - word);

    for (size_t i = 0; i < c->nkeys; i++) {
        char name[CONF_NAME_BYTES];

        conf_key_name(&c->keys[i], CONF_NAME_FLAG, name);
        if (strlen(name) == len && memcmp(name, word, len) == 0) {
            *ret_value = *eq ? eq + 1 : NULL;
            return i;
        }
    }
    return c->nkeys;
}

/* One flag at argv[*at], which is left at its last word. */
static int scan_flag(struct hf_conf *c, int argc, char **argv, int *at, const char **ret_file)
{
    const char *word = argv[*at];
    const char *value = NULL;
    size_t i = c->nkeys;
    bool is_config = strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0;
    bool ignored;

    if (strncmp(word, "--config=", 9) == 0) {
        is_config = true;
        value = word + 9;
    } else if (!is_config) {
        i = flag_find(c, word, &value);
        if (i == c->nkeys)
            return conf_fail(c, "%.100s: unknown flag, see --help", word);
        /* A switch needs no value, but may be followed by one. */
        if (!value && c->keys[i].kind == HF_CONF_BOOL &&
            (*at + 1 >= argc || !conf_parse_bool(argv[*at + 1], &ignored)))
            value = "true";
    }
    if (!value) {
        if (*at + 1 >= argc)
            return conf_fail(c, "%.100s: a value must follow", word);
        value = argv[++*at];
    }
    if (is_config)
        *ret_file = value;
    else
        c->entries[i].flag_text = value;
    return 0;
}

int conf_scan_flags(struct hf_conf *c, int argc, char **argv, int *ret_next, const char **ret_file)
{
    int at = 1;

    for (; at < argc && argv[at][0] == '-' && argv[at][1] != '\0'; at++) {
        int rc;

        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
            return HF_E_CANCELED;
        rc = scan_flag(c, argc, argv, &at, ret_file);
        if (rc)
            return rc;
    }
    *ret_next = at < argc ? at : argc;
    return 0;
}

int conf_apply_env(struct hf_conf *c, char *const *envp)
{
    for (size_t i = 0; i < c->nkeys; i++) {
        char name[CONF_NAME_BYTES];
        size_t len;

        conf_key_name(&c->keys[i], CONF_NAME_ENV, name);
        len = strlen(name);
        for (char *const *e = envp; *e; e++) {
            int rc;

            if (strncmp(*e, name, len) != 0 || (*e)[len] != '=')
                continue;
            rc = conf_set_text(c, i, *e + len + 1, name);
            if (rc)
                return rc;
            c->entries[i].set = true;
            break;
        }
    }
    return 0;
}

int conf_apply_flags(struct hf_conf *c)
{
    for (size_t i = 0; i < c->nkeys; i++) {
        char name[CONF_NAME_BYTES];
        int rc;

        if (!c->entries[i].flag_text)
            continue;
        conf_key_name(&c->keys[i], CONF_NAME_FLAG, name);
        rc = conf_set_text(c, i, c->entries[i].flag_text, name);
        if (rc)
            return rc;
        c->entries[i].set = true;
    }
    return 0;
}

int hf_conf_help(const struct hf_conf *c, struct hf_buf *out)
{
    static const char *const kinds[] = {[HF_CONF_STR] = "TEXT",
                                        [HF_CONF_U64] = "NUMBER",
                                        [HF_CONF_BOOL] = "[BOOL]",
                                        [HF_CONF_MS] = "TIME",
                                        [HF_CONF_LIST] = "A,B,..."};
    int rc = hf_buf_printf(out, "  -c, --config FILE\n        the configuration file (YAML)\n"
                                "  --help\n        this text\n");

    for (size_t i = 0; i < c->nkeys && rc == 0; i++) {
        const struct hf_conf_key *k = &c->keys[i];
        char flag[CONF_NAME_BYTES];
        char path[CONF_NAME_BYTES];
        char env[CONF_NAME_BYTES];
        char allowed[128];

        conf_key_name(k, CONF_NAME_FLAG, flag);
        conf_key_name(k, CONF_NAME_PATH, path);
        conf_key_name(k, CONF_NAME_ENV, env);
        conf_allowed(k, allowed, sizeof(allowed));
        rc = hf_buf_printf(out, "  %s %s\n        %s\n        %s; default \"%s\"; %s, %s\n", flag,
                           kinds[k->kind], k->help ? k->help : "", allowed, k->def ? k->def : "",
                           path, env);
    }
    return rc;
}
