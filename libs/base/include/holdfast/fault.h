/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault points: places where tests make the machinery fail. A process is told by HF_FAULT in its
 * environment, read once by hf_faults_init():
 *
 *   store.commit=error,log.fsync=crash@3,seg.write=delay:50
 *
 *   - error      the step fails as if the device had said EIO
 *   - nospace    the step fails as if the device were full
 *   - crash      _exit(137) at the step, like kill -9
 *   - delay:MS   the step waits MS milliseconds
 *   - @N         only at the Nth visit (from 1); without it at every visit
 * The table of points is fault.def: X(name, "dotted.name"). Without HF_FAULT a visit costs one
 * load.
 */
#ifndef HOLDFAST_FAULT_H
#define HOLDFAST_FAULT_H

enum hf_fault_point {
#define X(name, text) HF_FAULT_##name,
#include "holdfast/fault.def"
#undef X
    HF_FAULT_COUNT
};

struct hf_faults;

/* Parses a specification (NULL or "": none). CONF if it names an unknown point or action;
 * *ret_bad then points at the offending part of spec. Free with hf_faults_free. */
int hf_faults_new(const char *spec, struct hf_faults **ret, const char **ret_bad);
void hf_faults_free(struct hf_faults *f);
/* 0, or HF_E_IO / HF_E_NOSPC; may delay or not return. f == NULL: 0. Any thread. */
int hf_fault_slow(struct hf_faults *f, enum hf_fault_point p);
static inline int hf_fault(struct hf_faults *f, enum hf_fault_point p)
{
    return f ? hf_fault_slow(f, p) : 0;
}
const char *hf_fault_name(enum hf_fault_point p);

#endif
