/* SPDX-License-Identifier: Apache-2.0
 *
 * Random sequences of operations, by several clients and users, against the model and a running
 * file system:
 *
 *   model --url URL [--ops 100000] [--seed N] [--run 2000]
 *
 * A run is a sequence in a directory of its own; at its end the whole tree is compared. A sequence
 * that fails is shrunk: operations are left out as long as it still fails; what remains is printed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "model.h"

struct run {
    struct system *sys;
    const struct op *ops;
    size_t n;
    char what[512];  /* of the failure */
    size_t at;       /* the operation that failed; n: the tree at the end */
    uint64_t errors; /* operations that were to fail and did */
};

/* ---- comparing ---- */

static bool same_mode(uint32_t a, uint32_t b)
{
    uint32_t mask = ~0u;

    if (S_ISLNK(a))
        mask = S_IFMT;
    else if (!S_ISDIR(a)) /* set-id bits come and go by other rules, tested elsewhere */
        mask = ~(uint32_t)(S_ISUID | S_ISGID);
    return (a & mask) == (b & mask);
}

static int by_name(const void *a, const void *b)
{
    return (int)((const struct seen_entry *)a)->name - (int)((const struct seen_entry *)b)->name;
}

static bool same_entries(const struct seen *model, struct seen *sys)
{
    qsort(sys->entries, sys->nentries, sizeof(sys->entries[0]), by_name);
    if (model->nentries != sys->nentries)
        return false;
    for (unsigned i = 0; i < sys->nentries; i++)
        if (model->entries[i].name != sys->entries[i].name ||
            model->entries[i].type != sys->entries[i].type)
            return false;
    return true;
}

static size_t first_difference(const struct seen *a, const struct seen *b)
{
    size_t i = 0;

    while (i < a->len && i < b->len && a->data[i] == b->data[i])
        i++;
    return i;
}

static bool compare(const struct seen *model, struct seen *sys, bool data, char *what, size_t bytes)
{
    if (model->have_attr && sys->have_attr &&
        (!same_mode(model->mode, sys->mode) || model->nlink != sys->nlink ||
         model->uid != sys->uid || model->gid != sys->gid || model->size != sys->size)) {
        (void)snprintf(
            what, bytes,
            "attributes: model mode %o nlink %u uid %u gid %u size %llu, system mode %o nlink %u "
            "uid %u gid %u size %llu",
            model->mode, model->nlink, model->uid, model->gid, (unsigned long long)model->size,
            sys->mode, sys->nlink, sys->uid, sys->gid, (unsigned long long)sys->size);
        return false;
    }
    if (data && model->have_data &&
        (!sys->have_data || model->len != sys->len ||
         (sys->len && memcmp(model->data, sys->data, sys->len) != 0))) {
        (void)snprintf(what, bytes, "data: model %zu bytes, system %zu, first difference at %zu",
                       model->len, sys->len, first_difference(model, sys));
        return false;
    }
    if (model->have_entries && !same_entries(model, sys)) {
        (void)snprintf(what, bytes, "entries: model has %u, system %u", model->nentries,
                       sys->nentries);
        return false;
    }
    return true;
}

static const char *errors_text(const struct errors *e, char *buf, size_t bytes)
{
    size_t n = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < e->n && n < bytes; i++)
        n += (size_t)snprintf(buf + n, bytes - n, "%s%s", i ? " " : "", strerrorname_np(e->e[i]));
    return buf;
}

/* ---- a run ---- */

static bool step(struct run *r, struct model *m, const struct op *op)
{
    struct errors must, may;
    struct seen want, got;
    bool stale = model_stale(m, op);
    char text[128];
    int err;

    model_check(m, op, &must, &may);
    err = system_run(r->sys, op, &got);
    if (err) {
        if (errors_has(&must, err) || errors_has(&may, err)) {
            r->errors++;
            return true;
        }
        (void)snprintf(r->what, sizeof(r->what), "system: %s, model: %s", strerrorname_np(err),
                       must.n ? errors_text(&must, text, sizeof(text)) : "success");
        return false;
    }
    if (must.n) {
        (void)snprintf(r->what, sizeof(r->what), "system: success, model: %s",
                       errors_text(&must, text, sizeof(text)));
        return false;
    }
    model_apply(m, op, &want);
    return compare(&want, &got, !stale, r->what, sizeof(r->what));
}

struct look {
    struct run *run;
    size_t count;
};

static int look_at(void *arg, const struct path *p, const struct seen *want)
{
    struct look *l = arg;
    struct seen got;
    int rc = system_look(l->run->sys, (unsigned)(l->count++ % CLIENTS), p, &got);

    if (rc == 0 && compare(want, &got, true, l->run->what, sizeof(l->run->what)))
        return 0;
    if (rc)
        (void)snprintf(l->run->what, sizeof(l->run->what), "the tree at the end: %s",
                       strerror(-rc));
    return -1;
}

static bool check_tree(struct run *r, const struct model *m)
{
    struct look l = {.run = r};
    size_t count = 0;
    int rc;

    if (model_visit(m, look_at, &l))
        return false;
    rc = system_count(r->sys, &count);
    if (rc == 0 && count == l.count)
        return true;
    (void)snprintf(r->what, sizeof(r->what),
                   "the tree at the end: model has %zu names, system %zu (%s)", l.count, count,
                   strerror(-rc));
    return false;
}

/* True: no difference. */
static bool run_all(struct run *r)
{
    struct model *m = model_new();
    int rc = system_begin(r->sys);
    bool good = rc == 0;

    r->at = 0;
    if (rc)
        (void)snprintf(r->what, sizeof(r->what), "a new directory: %s", strerror(-rc));
    for (; good && r->at < r->n; r->at += good)
        good = step(r, m, &r->ops[r->at]);
    if (good)
        good = check_tree(r, m);
    rc = system_end(r->sys);
    if (good && rc) {
        (void)snprintf(r->what, sizeof(r->what), "removing the tree: %s", strerror(-rc));
        good = false;
    }
    model_free(m);
    return good;
}

/* ---- shrinking ---- */

/* Leaves out pieces of ever smaller size while the rest still fails. */
static void shrink(struct run *r)
{
    size_t n = r->at < r->n ? r->at + 1 : r->n;
    struct op *best = malloc(n * sizeof(*best)), *try = malloc(n * sizeof(*try));
    struct run t = {.sys = r->sys};

    if (!best || !try)
        abort();
    memcpy(best, r->ops, n * sizeof(*best));
    for (size_t piece = n / 2; piece > 0; piece = piece > 1 ? piece / 2 : 0) {
        for (size_t from = 0; from + piece <= n;) {
            memcpy(try, best, from * sizeof(*try));
            memcpy(try + from, best + from + piece, (n - from - piece) * sizeof(*try));
            t.ops = try;
            t.n = n - piece;
            if (run_all(&t)) {
                from += piece;
                continue;
            }
            n = t.at < t.n ? t.at + 1 : t.n;
            memcpy(best, try, n * sizeof(*best));
            memcpy(r->what, t.what, sizeof(r->what));
        }
    }
    printf("# shrunk to %zu operations: %s\n", n, r->what);
    for (size_t i = 0; i < n; i++) {
        char text[600];

        printf("#   %s\n", op_text(&best[i], text, sizeof(text)));
    }
    free(best);
    free(try);
}

/* ---- all ---- */

static uint64_t number(const char *text)
{
    char *end;
    uint64_t v = strtoull(text, &end, 10);

    if (*end || end == text) {
        (void)fprintf(stderr, "model: '%s' is not a number\n", text);
        exit(2);
    }
    return v;
}

int main(int argc, char **argv)
{
    uint64_t total = 100000, seed = (uint64_t)time(NULL), per_run = 2000, done = 0, errors = 0, rng;
    const char *url = NULL;
    struct system *sys;
    struct op *ops;
    bool good = true;
    int rc;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--url") == 0)
            url = argv[i + 1];
        else if (strcmp(argv[i], "--ops") == 0)
            total = number(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = number(argv[i + 1]);
        else if (strcmp(argv[i], "--run") == 0)
            per_run = number(argv[i + 1]);
    }
    if (!url || per_run == 0) {
        (void)fprintf(stderr, "usage: model --url URL [--ops N] [--seed N] [--run N]\n");
        return 2;
    }
    rc = system_new(url, &sys);
    if (rc) {
        (void)fprintf(stderr, "model: %s: %s\n", url, strerror(-rc));
        return 1;
    }
    printf("# seed %llu\n", (unsigned long long)seed);
    (void)fflush(stdout);
    ops = calloc(per_run, sizeof(*ops));
    rng = seed;
    while (ops && good && done < total) {
        struct run r = {.sys = sys, .ops = ops, .n = per_run};

        for (uint64_t i = 0; i < per_run; i++)
            op_random(&ops[i], &rng);
        good = run_all(&r);
        done += r.at;
        errors += r.errors;
        if (!good) {
            char text[600];

            printf("# operation %llu: %s\n#   %s\n", (unsigned long long)done, r.what,
                   r.at < r.n ? op_text(&r.ops[r.at], text, sizeof(text))
                              : "(the tree at the end)");
            (void)fflush(stdout);
            shrink(&r);
        }
    }
    printf("%s 1 - model: %llu operations by %u clients, %llu of them refused as they had to be\n",
           good ? "ok" : "not ok", (unsigned long long)done, CLIENTS, (unsigned long long)errors);
    free(ops);
    system_free(sys);
    return good ? 0 : 1;
}
