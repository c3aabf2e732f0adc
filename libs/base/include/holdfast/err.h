/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_ERR_H
#define HOLDFAST_ERR_H

/* Functions return 0 or one of these, always negative. See err.def. */
enum hf_err {
    HF_OK = 0,
#define X(name, number, text) HF_E_##name = -(number),
#include "holdfast/err.def"
#undef X
};

/* "NOENT" for HF_E_NOENT, "OK" for 0, "UNKNOWN" for what is not in err.def. Static string, any
 * thread. */
const char *hf_err_name(int err);
/* "no such file or directory". Static string, any thread. */
const char *hf_err_text(int err);
/* The nearest error for an errno value (positive), HF_E_IO where nothing is near. */
int hf_err_from_errno(int errno_value);
/* The errno value (positive) that a program is told; EIO where nothing is near. 0 for 0. */
int hf_err_to_errno(int err);

#endif
