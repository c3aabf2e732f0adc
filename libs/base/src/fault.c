/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/fault.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/err.h"

enum fault_action { FAULT_ERROR, FAULT_NOSPACE, FAULT_CRASH, FAULT_DELAY };

#define DELAY_MAX_MS 3600000u
#define VISIT_MAX    1000000000u
#define RULES_MAX    64u

struct fault_rule {
    enum hf_fault_point point;
    enum fault_action action;
    unsigned delay_ms;
    unsigned visit; /* 0 = every one */
};

struct hf_faults {
    atomic_uint visits[HF_FAULT_COUNT];
    unsigned nrules;
    struct fault_rule rules[RULES_MAX]; /* written by hf_faults_new only */
};

const char *hf_fault_name(enum hf_fault_point p)
{
    static const char *const names[] = {
#define X(name, text) text,
#include "holdfast/fault.def"
#undef X
    };

    return (unsigned)p < HF_FAULT_COUNT ? names[p] : "unknown";
}

/* A decimal number of 1..max that fills [s, end). */
static bool parse_number(const char *s, const char *end, unsigned max, unsigned *ret)
{
    uint64_t v = 0;

    if (s == end)
        return false;
    for (; s < end; s++) {
        if (*s < '0' || *s > '9')
            return false;
        v = v * 10 + (unsigned)(*s - '0');
        if (v > max)
            return false;
    }
    *ret = (unsigned)v;
    return true;
}

static bool word_is(const char *s, const char *end, const char *word)
{
    size_t n = strlen(word);

    return (size_t)(end - s) == n && memcmp(s, word, n) == 0;
}

static bool parse_action(const char *s, const char *end, struct fault_rule *r)
{
    const char *at = memchr(s, '@', (size_t)(end - s));
    const char *stop = at ? at : end;

    if (at && (!parse_number(at + 1, end, VISIT_MAX, &r->visit) || r->visit == 0))
        return false;
    if (word_is(s, stop, "error"))
        r->action = FAULT_ERROR;
    else if (word_is(s, stop, "nospace"))
        r->action = FAULT_NOSPACE;
    else if (word_is(s, stop, "crash"))
        r->action = FAULT_CRASH;
    else if (stop - s > 6 && word_is(s, s + 6, "delay:")) {
        r->action = FAULT_DELAY;
        return parse_number(s + 6, stop, DELAY_MAX_MS, &r->delay_ms);
    } else
        return false;
    return true;
}

/* One "point=action" of [s, end). */
static bool parse_rule(const char *s, const char *end, struct fault_rule *r)
{
    const char *eq = memchr(s, '=', (size_t)(end - s));

    *r = (struct fault_rule){0};
    if (!eq)
        return false;
    for (unsigned p = 0; p < HF_FAULT_COUNT; p++) {
        if (word_is(s, eq, hf_fault_name((enum hf_fault_point)p))) {
            r->point = (enum hf_fault_point)p;
            return parse_action(eq + 1, end, r);
        }
    }
    return false;
}

int hf_faults_new(const char *spec, struct hf_faults **ret, const char **ret_bad)
{
    struct hf_faults *f;

    if (!spec || !*spec) {
        *ret = NULL;
        return 0;
    }
    f = calloc(1, sizeof(*f));
    if (!f)
        return HF_E_NOMEM;
    for (const char *s = spec;; s++) {
        const char *end = strchrnul(s, ',');

        if (f->nrules == RULES_MAX || !parse_rule(s, end, &f->rules[f->nrules])) {
            if (ret_bad)
                *ret_bad = s;
            free(f);
            return HF_E_CONF;
        }
        f->nrules++;
        s = end;
        if (!*s)
            break;
    }
    *ret = f;
    return 0;
}

void hf_faults_free(struct hf_faults *f)
{
    free(f);
}

static void delay_ms(unsigned ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&ts, &ts) != 0)
        ;
}

int hf_fault_slow(struct hf_faults *f, enum hf_fault_point p)
{
    unsigned visit = atomic_fetch_add_explicit(&f->visits[p], 1, memory_order_relaxed) + 1;
    int rc = 0;

    for (unsigned i = 0; i < f->nrules; i++) {
        const struct fault_rule *r = &f->rules[i];

        if (r->point != p || (r->visit != 0 && r->visit != visit))
            continue;
        switch (r->action) {
        case FAULT_ERROR:
            rc = HF_E_IO;
            break;
        case FAULT_NOSPACE:
            rc = HF_E_NOSPC;
            break;
        case FAULT_CRASH:
            _exit(137);
        case FAULT_DELAY:
            delay_ms(r->delay_ms);
            break;
        }
    }
    return rc;
}
