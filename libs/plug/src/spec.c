/* SPDX-License-Identifier: Apache-2.0
 *
 * Stack specifications: NAME or NAME(args), joined by '+', top first.
 */
#include "plug_priv.h"

#include <stdbool.h>

#include <stdio.h>
#include <string.h>

#include "holdfast/err.h"

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Reads one layer at *pos and leaves *pos behind it. */
static int parse_layer(const char **pos, struct hf_plug_layer *l, const char **ret_why)
{
    const char *p = *pos;
    size_t n = 0;

    while (name_char(*p)) {
        if (n == HF_PLUG_NAME_MAX) {
            *ret_why = "name is too long";
            return HF_E_CONF;
        }
        l->name[n++] = *p++;
    }
    l->name[n] = '\0';
    if (n == 0) {
        *ret_why = "a plugin name is expected";
        return HF_E_CONF;
    }
    n = 0;
    if (*p == '(') {
        const char *end = strchr(++p, ')');

        if (!end) {
            *ret_why = "')' is missing";
            return HF_E_CONF;
        }
        n = (size_t)(end - p);
        if (n > HF_PLUG_ARGS_MAX) {
            *ret_why = "arguments are too long";
            return HF_E_CONF;
        }
        memcpy(l->args, p, n);
        p = end + 1;
    }
    l->args[n] = '\0';
    *pos = p;
    return 0;
}

int hf_plug_spec_parse(const char *spec, struct hf_plug_layer layers[HF_PLUG_DEPTH_MAX],
                       unsigned *ret_n, char *err, size_t err_bytes)
{
    const char *p = spec, *why = NULL;
    unsigned n = 0;

    for (;;) {
        if (n == HF_PLUG_DEPTH_MAX) {
            why = "too many layers";
            break;
        }
        if (parse_layer(&p, &layers[n], &why))
            break;
        n++;
        if (*p == '\0') {
            *ret_n = n;
            return 0;
        }
        if (*p != '+') {
            why = "'+' or the end is expected";
            break;
        }
        p++;
    }
    (void)snprintf(err, err_bytes, "backend '%.100s': %s at offset %zu", spec, why,
                   (size_t)(p - spec));
    return HF_E_CONF;
}
