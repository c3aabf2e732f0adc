/* SPDX-License-Identifier: Apache-2.0
 *
 * A metadata service in this process, in a temp folder, and a synchronous client for it.
 */
#ifndef HF_TEST_SUPPORT_META_H
#define HF_TEST_SUPPORT_META_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/rpc.h"
#include "holdfast/svc_meta.h"

struct fixture {
    char dir[64];
    char url[96];
    struct hf_env *env;
    struct hf_faults *faults;
    struct hf_metasvc_opts opts; /* change before fixture_start */
    Hf__MapGetRep map;
    struct hf_metasvc *svc;
    struct hf_loop *loop;
    struct hf_rpc_client *client;
    int fatal; /* how often the service said that it must not go on */
    char err[512];
};

void fixture_init(struct fixture *f, const char *faults);
/* In a folder that exists; NULL: a new one. */
void fixture_init_in(struct fixture *f, const char *dir, const char *faults);
int fixture_start(struct fixture *f); /* service and client; f->err */
void fixture_stop(struct fixture *f); /* keeps the folder */
void fixture_fini(struct fixture *f); /* removes it */

/* One call to shard 0 and what came back. */
struct result {
    int status;
    bool created;
    uint64_t ino;
    uint32_t gen;
    uint64_t size;
};
struct result do_create(struct fixture *f, const char *name, uint64_t session, uint32_t slot,
                        uint64_t sequence);
struct result do_lookup(struct fixture *f, const char *name);
struct result do_remove(struct fixture *f, const char *name);
struct result do_write(struct fixture *f, uint64_t ino, uint32_t gen, const void *data,
                       uint32_t len, uint32_t stable);
int do_session_open(struct fixture *f, uint64_t session); /* one that holds opens */
int do_session_close(struct fixture *f, uint64_t session);
/* As do_create, and the session has it open. */
struct result do_create_open(struct fixture *f, const char *name, uint64_t session, uint32_t slot,
                             uint64_t sequence);
int do_close(struct fixture *f, uint64_t ino, uint64_t session, uint32_t slot, uint64_t sequence);
/* Creates names PREFIX0..n-1 with `depth` calls in flight; counts those acknowledged with status 0,
 * tells each to acked (may be NULL) the moment it is acknowledged. */
unsigned create_many(struct fixture *f, const char *prefix, unsigned n, unsigned depth,
                     void (*acked)(void *arg, unsigned i), void *arg);
uint64_t counter(struct fixture *f, const char *name);

#endif
