/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration: one YAML file, every scalar key also a flag and an environment variable.
 *
 * A service declares its keys in conf.def, X(section, key, KIND, default, min, max, "help"), from
 * which it makes a table of struct hf_conf_key. A key "nfs.listen" is
 *
 *   nfs: { listen: ... }   in the file,
 *   --nfs-listen VALUE     as a flag (also --nfs-listen=VALUE),
 *   HOLDFAST_NFS_LISTEN    in the environment (dots and dashes become underscores).
 *
 * Flags win over environment, environment over file, file over default. The file is read with
 * libcyaml under a schema made from the table: an unknown key, a wrong type or a value out of range
 * is an error that names file, line, key and what is allowed.
 */
#ifndef HOLDFAST_CONF_H
#define HOLDFAST_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/buf.h"

enum hf_conf_kind {
    HF_CONF_STR,  /* char *, max = longest length; owned by the conf object */
    HF_CONF_U64,  /* uint64_t; K, M, G, T suffixes are powers of 1024 */
    HF_CONF_BOOL, /* bool: true/false, yes/no, on/off, 1/0 */
    HF_CONF_MS,   /* uint64_t milliseconds; suffixes ms, s, m, h; no suffix = ms */
    HF_CONF_LIST, /* struct hf_conf_list of strings; "a,b,c" as flag or environment */
};

struct hf_conf_list {
    char **items;
    size_t n;
};

struct hf_conf_key {
    const char *section; /* "" for top level */
    const char *key;     /* lower case, words joined by _ (flag: -) */
    enum hf_conf_kind kind;
    const char *def; /* default as text */
    uint64_t min, max;
    const char *help;
    size_t offset; /* of the field in the target struct */
};

struct hf_conf;

/* target: zeroed struct of the caller into which values are written; strings stay owned by *ret. */
int hf_conf_new(const struct hf_conf_key *keys, size_t nkeys, void *target, struct hf_conf **ret);
void hf_conf_free(struct hf_conf *c);
/* Applies defaults, then the file (NULL: none), then the environment (envp may be NULL), then
 * flags. argv[0] is skipped; parsing stops at the first word that is not a flag or at "--":
 * *ret_next (may be NULL) is the index of the first word left over, past the "--". A BOOL flag may
 * stand alone (true). max 0 = no limit of its own. A STR or LIST with min > 0 and an empty default
 * must be set. May be called again; on error the target may be half-written and outputs are
 * untouched. HF_E_CONF with a one-line explanation in err (>= 512 bytes, always terminated).
 * "--config FILE" and "-c FILE" are understood here and name the file. "--help": HF_E_CANCELED. */
int hf_conf_load(struct hf_conf *c, const char *file, char *const *envp, int argc, char **argv,
                 int *ret_next, char *err, size_t err_bytes);
/* Where the present value of a key came from, for checks of the caller's own: "FILE:LINE", the
 * flag, the variable, or "default". Lives as long as c, until the next load. */
const char *hf_conf_where(const struct hf_conf *c, const char *section, const char *key);
/* Help text of all keys, for --help. */
int hf_conf_help(const struct hf_conf *c, struct hf_buf *out);
/* The effective configuration as YAML. */
int hf_conf_dump(const struct hf_conf *c, struct hf_buf *out);

/* "4M" -> 4194304. HF_E_INVAL. */
int hf_parse_size(const char *s, uint64_t *ret);

#endif
