/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the configuration reader share: conf.c (the object, order of sources),
 * conf_value.c (text to values and back), conf_flags.c (names, flags, environment, help),
 * conf_schema.c and conf_file.c (YAML).
 */
#ifndef HOLDFAST_CONF_PRIV_H
#define HOLDFAST_CONF_PRIV_H

#include <cyaml/cyaml.h>

#include "holdfast/conf.h"

#define CONF_NAME_BYTES  96 /* HOLDFAST_ + section + _ + key */
#define CONF_WHERE_BYTES 256
#define CONF_WORD_MAX    40u   /* of a section or key name */
#define CONF_STR_MAX     4096u /* bytes of a string or list item when the table does not say */
#define CONF_LIST_MAX    4096u /* items, likewise */

/* Where libcyaml puts a value: text of a scalar, or the items of a list. */
struct conf_slot {
    char *text;
    char **items;
    uint32_t n;
};

/* A section's place in the schema. The slots of top-level keys lie at the start of libcyaml's top
 * struct, followed by one pointer to an array of slots per named section. */
struct conf_section {
    const char *name;
    struct cyaml_schema_field *fields; /* nkeys + 1 */
    size_t nkeys;
};

struct conf_entry {
    size_t section; /* index; 0 is the top level */
    size_t pos;     /* among the section's keys */
    char *str;      /* STR: what the target points to */
    struct hf_conf_list list;
    bool set;                     /* by file, environment or flag in this load */
    unsigned line;                /* in the file; 0 = not there */
    char where[CONF_WHERE_BYTES]; /* what the present value came from: "FILE:LINE", a flag, a
                                     variable, "default" */
    const char *flag_text;        /* borrowed from argv during a load */
};

struct hf_conf {
    const struct hf_conf_key *keys;
    size_t nkeys;
    void *target;
    struct conf_entry *entries; /* nkeys */

    struct conf_section *sections; /* [0] is the top level */
    size_t nsections;
    struct cyaml_schema_field *top_fields;
    struct cyaml_schema_value top;

    char *err; /* of the caller, during a load */
    size_t err_bytes;
};

enum conf_name { CONF_NAME_PATH, CONF_NAME_FLAG, CONF_NAME_ENV };

/* conf.c: writes the explanation, control bytes made harmless; always HF_E_CONF. */
int conf_fail(struct hf_conf *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* conf_value.c: check and store the value of key i; where names the source in errors. */
int conf_set_text(struct hf_conf *c, size_t i, const char *text, const char *where);
int conf_set_items(struct hf_conf *c, size_t i, char *const *items, size_t n, const char *where);
/* "a number from 1 to 65535" */
void conf_allowed(const struct hf_conf_key *k, char *buf, size_t bytes);
/* The present value as text (not for lists). */
int conf_get_text(const struct hf_conf *c, size_t i, struct hf_buf *out);
bool conf_parse_bool(const char *s, bool *ret);
void conf_entry_clear(struct conf_entry *e);

/* conf_flags.c */
void conf_key_name(const struct hf_conf_key *k, enum conf_name kind, char buf[CONF_NAME_BYTES]);
/* Notes flags in entries; *ret_file is replaced by --config. CANCELED for --help. */
int conf_scan_flags(struct hf_conf *c, int argc, char **argv, int *ret_next, const char **ret_file);
int conf_apply_env(struct hf_conf *c, char *const *envp);
int conf_apply_flags(struct hf_conf *c);

/* conf_schema.c */
int conf_schema_build(struct hf_conf *c);
void conf_schema_free(struct hf_conf *c);
/* The section's index by name, or c->nsections. */
size_t conf_section_find(const struct hf_conf *c, const char *name, size_t len);
/* The key's index by section index and name, or c->nkeys. */
size_t conf_key_find(const struct hf_conf *c, size_t section, const char *name, size_t len);
/* The slot of key i in libcyaml's struct; NULL if its section is absent. */
struct conf_slot *conf_slot_of(const struct hf_conf *c, void *top, size_t i);
size_t conf_top_bytes(const struct hf_conf *c);
struct conf_slot **conf_section_ptr(const struct hf_conf *c, void *top, size_t section);

/* conf_file.c */
int conf_apply_file(struct hf_conf *c, const char *file);

#endif
