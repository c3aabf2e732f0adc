/* SPDX-License-Identifier: Apache-2.0
 *
 * Two clients write, append, truncate, extend, punch, zero, allocate, read, seek and commit one
 * file at the same time, on a network that cuts connections and loses answers, under many seeds.
 * Every byte is a register: each write stores its own number there, a truncation stores zeros from
 * its size on. A byte that was read must come from an operation that had begun before the read
 * ended and that no other one certainly replaced: one that began after it had ended and ended
 * before the read began. Where an append went is known when it has ended: until then it may be
 * anywhere. What SEEK_DATA passed over was read as zeros.
 *
 * Runs have either appends or truncations. An append that a truncation overtakes goes to the new
 * end; what it had put at the old one shows if others have made the file longer than that meanwhile
 * (see the README).
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support_shard.h"

#define OPS    120u
#define FLIGHT 6u
#define SPAN   (5 * W_CHUNK)
#define LEN    (W_CHUNK + W_CHUNK / 2)
#define SPOTS  100u
#define APPEND 40000u

enum kind { WRITE, EXTEND, TRUNCATE, READ, COMMIT, ALLOCATE, ZERO, SEEK };

struct op {
    enum kind kind;
    uint64_t from, to; /* bytes that it sets or reads */
    uint8_t value;
    uint64_t begin, end; /* on the clock of begins and ends; end 0: not yet, or unknown */
    bool active;
    struct ioprobe io;
    struct probe call;
    struct rangeprobe range;
    uint8_t *buf;
};

struct model {
    struct world w;
    struct hf_client *c[2];
    uint64_t file;
    struct op ops[OPS];
    unsigned nops;
    uint64_t clock;
    bool appends; /* instead of truncations */
    unsigned checked, unknown, appended, sought, zeroed;
};

static uint64_t rnd(struct model *m, uint64_t n)
{
    return hf_env_random_u64(m->w.env) % n;
}

static bool sets(const struct op *o, uint64_t at)
{
    return (o->kind == WRITE || o->kind == EXTEND || o->kind == TRUNCATE || o->kind == ZERO) &&
           at >= o->from && at < o->to;
}

/* May the byte have been this when it was read by r? */
static bool allowed(const struct model *m, const struct op *r, uint64_t at, uint8_t value)
{
    bool initial = value == 0;

    for (unsigned i = 0; i < m->nops; i++) {
        const struct op *o = &m->ops[i];
        bool replaced = false;

        if (!sets(o, at) || o->begin > r->end)
            continue;
        if (o->end && o->end < r->begin)
            initial = false;
        if (o->value != value)
            continue;
        for (unsigned j = 0; o->end && j < m->nops && !replaced; j++) {
            const struct op *x = &m->ops[j];

            replaced = sets(x, at) && x->begin > o->end && x->end && x->end < r->begin;
        }
        if (!replaced)
            return true;
    }
    return initial;
}

static void check_spot(struct model *m, const struct op *r, uint64_t at, uint64_t seed)
{
    uint8_t value;

    if (at < r->from || at >= r->from + r->io.io.count)
        return;
    value = r->buf[at - r->from];
    m->checked++;
    cr_assert(allowed(m, r, at, value), "seed %lu: byte %lu was read as %u", (unsigned long)seed,
              (unsigned long)at, value);
}

static void check_read(struct model *m, const struct op *r, uint64_t seed)
{
    for (unsigned i = 0; i < m->nops; i++) {
        for (uint64_t d = 0; d < 3; d++) {
            check_spot(m, r, m->ops[i].from + d - 1, seed);
            check_spot(m, r, m->ops[i].to + d - 1, seed);
        }
    }
    for (unsigned i = 0; i < SPOTS && r->io.io.count; i++)
        check_spot(m, r, r->from + rnd(m, r->io.io.count), seed);
}

static void begin_range(struct model *m, struct hf_client *c, struct op *o, uint32_t len)
{
    bool grow = rnd(m, 3) == 0;
    uint32_t mode = o->kind == ALLOCATE ? HF__FALLOCATE_MODE__FA_ALLOCATE
                    : rnd(m, 2)         ? HF__FALLOCATE_MODE__FA_PUNCH
                                        : HF__FALLOCATE_MODE__FA_ZERO;

    range_fallocate(c, &o->range, m->file, mode, mode == HF__FALLOCATE_MODE__FA_PUNCH || !grow,
                    o->from, len);
}

static enum kind pick_kind(struct model *m, uint64_t dice)
{
    switch (rnd(m, 10)) {
    case 0:
        return ALLOCATE;
    case 1:
        return ZERO;
    case 2:
        return SEEK;
    default:
        return dice < 40   ? WRITE
               : dice < 60 ? (m->appends ? EXTEND : TRUNCATE)
               : dice < 90 ? READ
                           : COMMIT;
    }
}

static void begin(struct model *m)
{
    struct op *o = &m->ops[m->nops++];
    struct hf_client *c = m->c[rnd(m, 2)];
    uint64_t dice = rnd(m, 100);
    bool small = rnd(m, 3) == 0;
    uint32_t len = 1 + (uint32_t)rnd(m, small ? 3000 : LEN);

    o->from = rnd(m, small ? W_INLINE_MAX : SPAN - LEN);
    o->to = o->from + len;
    o->active = true;
    o->begin = ++m->clock;
    o->kind = pick_kind(m, dice);
    switch (o->kind) {
    case WRITE:
        o->value = (uint8_t)m->nops;
        o->buf = malloc(len);
        memset(o->buf, o->value, len);
        io_write(c, &o->io, m->file, o->from, len, o->buf, dice < 20 ? 0 : 2);
        break;
    case EXTEND:
        len = 1 + len % APPEND;
        o->value = (uint8_t)m->nops;
        o->buf = malloc(len);
        memset(o->buf, o->value, len);
        o->from = 0;
        o->to = ~0ull;
        io_append(c, &o->io, m->file, len, o->buf, dice < 20 ? 0 : 2);
        break;
    case ALLOCATE:
    case ZERO:
        begin_range(m, c, o, len);
        break;
    case SEEK:
        o->buf = calloc(1, len);
        o->to = o->from + len;
        range_seek(c, &o->range, m->file, o->from, false);
        break;
    case TRUNCATE:
        /* An inline file cannot be made longer than inline_max by this shard. */
        if (shard_limits_size(&m->w, m->file))
            o->from %= W_INLINE_MAX;
        o->to = ~0ull;
        probe_truncate(c, &o->call, m->file, o->from);
        break;
    case READ:
        o->buf = malloc(len);
        io_read(c, &o->io, m->file, o->from, len, o->buf);
        break;
    case COMMIT:
        io_commit(c, &o->io, m->file, 0, 0);
        break;
    }
}

static bool ended(const struct op *o, int *ret_status)
{
    switch (o->kind) {
    case TRUNCATE:
        *ret_status = o->call.call.status;
        return o->call.done;
    case ALLOCATE:
    case ZERO:
    case SEEK:
        *ret_status = o->range.r.status;
        return o->range.done;
    default:
        *ret_status = o->io.io.status;
        return o->io.done;
    }
}

/* What only the end of an operation tells. */
static void learn(struct model *m, struct op *o, int *status)
{
    if (o->kind == EXTEND && *status == 0) {
        o->from = o->io.io.at;
        o->to = o->from + o->io.io.len;
        m->appended++;
    }
    if (o->kind == SEEK && (*status == 0 || *status == HF_E_NXIO)) {
        uint64_t at = *status ? o->to : o->range.r.at;

        cr_assert_geq(at, o->from);
        o->io.io.count = (uint32_t)((at < o->to ? at : o->to) - o->from);
        m->sought++;
        *status = 0;
    }
    if (o->kind == ZERO && *status == 0)
        m->zeroed++;
}

/* Collects what has ended; returns how many are in flight. */
static unsigned collect(struct model *m, uint64_t seed)
{
    unsigned active = 0;

    for (unsigned i = 0; i < m->nops; i++) {
        struct op *o = &m->ops[i];
        int status;
        bool done = ended(o, &status);

        if (!o->active || !done) {
            active += o->active;
            continue;
        }
        o->active = false;
        learn(m, o, &status);
        cr_assert(status == 0 || status == HF_E_TIMEDOUT || status == HF_E_JUKEBOX, "seed %lu: %s",
                  (unsigned long)seed, hf_err_name(status));
        if (status == 0)
            o->end = ++m->clock;
        else
            m->unknown++;
        if ((o->kind == READ || o->kind == SEEK) && status == 0)
            check_read(m, o, seed);
    }
    return active;
}

static void harm(struct model *m)
{
    switch (rnd(m, 400)) {
    case 0:
        hf_rpc_sim_cut(m->w.env, m->w.meta[0].url);
        break;
    case 1:
        hf_rpc_sim_cut(m->w.env, m->w.seg[rnd(m, 2)].url);
        break;
    case 2:
        m->w.drop_replies = 1;
        break;
    default:
        break;
    }
}

static struct model *run(uint64_t seed, bool harmful)
{
    struct model *m = calloc(1, sizeof(*m));

    cr_assert(m);
    m->appends = seed % 3 == 0;
    world_init(&m->w, seed);
    m->c[0] = world_client(&m->w, NULL);
    m->c[1] = world_client(&m->w, NULL);
    world_run(&m->w, 10);
    m->file = shard_make_file(&m->w, m->c[0]);
    for (;;) {
        unsigned active = collect(m, seed);

        if (active == 0 && m->nops == OPS)
            break;
        if (active < FLIGHT && m->nops < OPS && rnd(m, 10) == 0)
            begin(m);
        if (harmful)
            harm(m);
        cr_assert(hf_sim_step(m->w.env));
    }
    return m;
}

static void end(struct model *m)
{
    hf_client_free(m->c[0]);
    hf_client_free(m->c[1]);
    for (unsigned i = 0; i < OPS; i++)
        free(m->ops[i].buf);
    world_fini(&m->w);
    free(m);
}

Test(model, no_byte_ever_comes_back, .timeout = 100)
{
    struct hf_client_stats a, b;
    uint64_t trims = 0, promotes = 0;
    unsigned checked = 0, unknown = 0, appended = 0, sought = 0, zeroed = 0;

    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct model *m = run(seed, seed % 2);

        hf_client_stats(m->c[0], &a);
        hf_client_stats(m->c[1], &b);
        trims += a.trims + b.trims;
        promotes += a.promotes + b.promotes;
        checked += m->checked;
        unknown += m->unknown;
        appended += m->appended;
        sought += m->sought;
        zeroed += m->zeroed;
        end(m);
    }
    cr_assert_gt(trims, 1000);
    cr_assert_gt(promotes, 40);
    cr_assert_gt(checked, 100000);
    cr_assert_gt(appended, 400);
    cr_assert_gt(sought, 1000);
    cr_assert_gt(zeroed, 1000);
    cr_assert_lt(unknown, 150 * OPS / 20);
}
