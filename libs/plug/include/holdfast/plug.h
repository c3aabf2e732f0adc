/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads backends (holdfast/backend.h): finds the shared object, checks its ABI, fills default
 * methods.
 */
#ifndef HOLDFAST_PLUG_H
#define HOLDFAST_PLUG_H

#include "holdfast/backend.h"

struct hf_plug;    /* a loaded set of plugins */
struct hf_plug_be; /* an open backend, possibly a stack */

/* dir: where NAME.so files named backend-NAME.so live. */
/* dir is copied; it is looked into only when a plugin is first named. NOMEM. A set of plugins is
 * used by one thread at a time; open backends by any. */
int hf_plug_new(const char *dir, struct hf_plug **ret);
void hf_plug_free(struct hf_plug *p); /* after every backend was closed */

/* spec: a stack from top to bottom joined by '+', each NAME or NAME(args): "posix",
 * "delay(ms=5)+posix", "error(op=write,every=3)+mem". path goes to the lowest. NOENT: no such
 * plugin; VERSION: wrong ABI; CONF: spec does not parse. err: >= 512 bytes, one line that names
 * plugin and reason. */
int hf_plug_open(struct hf_plug *p, const char *spec, const char *path, unsigned threads,
                 struct hf_plug_be **ret, char *err, size_t err_bytes);
/* A backend that is part of the program (tests, simulation) instead of a shared object. opts: as
 * for ops->open; ops must outlive the backend. VERSION, or what open says. */
int hf_plug_open_ops(const struct hf_backend_ops *ops, const struct hf_be_opts *opts,
                     struct hf_plug_be **ret, char *err, size_t err_bytes);
/* Every io must have completed. */
void hf_plug_close(struct hf_plug_be *be);
const struct hf_backend_ops *hf_plug_ops(const struct hf_plug_be *be);
struct hf_be *hf_plug_handle(const struct hf_plug_be *be);
void hf_plug_submit(struct hf_plug_be *be, struct hf_be_io *io);
/* Submit and wait for the completion in the calling thread (tests, start-up). Returns io->status.
 */
int hf_plug_do(struct hf_plug_be *be, struct hf_be_io *io);

#endif
