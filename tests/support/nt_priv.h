/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_NT_PRIV_H
#define HF_TESTS_NT_PRIV_H

#include "nt.h"

/* The common course of a call: nt_p_start, queue it, nt_p_finish; its callback begins with nt_p_got
 * (false: there is no result). */
void nt_p_start(struct nt *c);
uint32_t nt_p_finish(struct nt *c, int queued, const char *what);
bool nt_p_got(struct nt *c, int status);

nfs_fh3 nt_p_fh_arg(const struct nt_fh *fh);
diropargs3 nt_p_name_arg(const struct nt_fh *dir, const char *name);
sattr3 nt_p_sattr_arg(const struct nt_set *s);
void nt_p_copy_fh(struct nt_fh *to, const nfs_fh3 *from);
void nt_p_copy_attr(bool *have, fattr3 *to, const post_op_attr *from);
void nt_p_copy_wcc(struct nt_wcc *to, const wcc_data *from);
void nt_p_copy_new(struct nt_res *r, const post_op_fh3 *fh, const post_op_attr *attr);

#endif
