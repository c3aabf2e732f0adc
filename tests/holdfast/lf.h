/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the tests of libholdfast: connections to the runner's node, checks of errno results,
 * bytes that depend on their place.
 */
#ifndef HF_TESTS_LF_H
#define HF_TESTS_LF_H

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "holdfast/holdfast.h"
#include "nt.h"

extern const struct hf_user lf_root, lf_user; /* uid 0; uid and gid 1000 */

/* A connection; zeros in o (may be NULL) are defaults. Fails the test if it cannot be had. */
struct hf_fs *lf_open(struct nt_env *e, const struct hf_fs_opts *o);
void lf_close(struct hf_fs *fs);
/* The test's own directory. */
struct hf_handle lf_dir(struct nt_env *e, struct hf_fs *fs);
/* Creates and opens for reading and writing. */
struct hf_file *lf_create(struct hf_fs *fs, struct hf_handle dir, const char *name, int flags);
/* Opens by name. */
struct hf_file *lf_open_name(struct hf_fs *fs, struct hf_handle dir, const char *name, int flags);
/* Writes or checks `len` bytes of the pattern `seed` at off. */
void lf_put(struct hf_file *f, uint32_t seed, uint64_t off, size_t len);
void lf_check(struct hf_file *f, uint32_t seed, uint64_t off, size_t len);
void lf_check_zero(struct hf_file *f, uint64_t off, size_t len);
uint64_t lf_size(struct hf_fs *fs, struct hf_handle h);
struct hf_fs_stats lf_stats(struct hf_fs *fs);
/* Waits (10 s) until cond(arg). */
void lf_until(bool (*cond)(void *arg), void *arg, const char *what);

/* A call that returns 0 or a negative errno. */
#define LF_IS(call, want) lf_is(__FILE__, __LINE__, #call, (call), (want))
#define LF_OK(call)       LF_IS(call, 0)
void lf_is(const char *file, int line, const char *what, int64_t got, int64_t want);

#endif
